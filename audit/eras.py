"""Eras: transaction ids start again after a restore, so the trail's order needs one number more.

A new era begins before anything else is written: `prepare`, every sweeper and every sealing look
for the signs of a restore (L-2).
"""

from __future__ import annotations

from typing import Any, Final

import structlog
from django.db import connection, transaction

from audit import actors
from audit.actions import Action
from audit.models import Era
from audit.recording import Subject, record

log = structlog.get_logger(__name__)

MOVED: Final = "this is another database than before, restored or moved"
BEHIND: Final = "its transaction ids are below those of its own trail, so it was restored"

# The newest event by id and the last seal stand for all: both are found by an index.
_SIGNS: Final = """
    SELECT e.number, e.place, audit_place(),
        greatest(
            pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
            pg_current_xact_id_if_assigned()::text::bigint + 1
        ),
        greatest(
            (SELECT xid FROM audit_event WHERE era = e.number ORDER BY id DESC LIMIT 1),
            (SELECT last_xid FROM audit_seal WHERE era = e.number ORDER BY number DESC LIMIT 1)
        )
    FROM audit_era AS e ORDER BY e.number DESC LIMIT 1
"""


def known() -> list[int]:
    """The numbers of all eras, in their order."""
    return list(Era.objects.order_by("number").values_list("number", flat=True))


def check() -> int | None:
    """Begin a new era when this database was restored; its number, or None when it was not."""
    if _reason() is None:
        return None
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Whoever writes now comes to an end first; whoever waits then writes to the new era.
            cursor.execute("LOCK TABLE audit_event IN SHARE ROW EXCLUSIVE MODE")
        signs = _reason()
        if signs is None:
            return None
        before, reason, details = signs
        era = Era.objects.create(number=before + 1, reason=reason)
        details |= {"number": era.number, "reason": reason}
        record(Action.AUDIT_ERA_BEGAN, actors.SEALER, Subject(), details)
    log.warning("audit.era_began", era=era.number, reason=reason)
    return era.number


def _reason() -> tuple[int, str, dict[str, Any]] | None:
    """The era in force, and what says that it is over; None when nothing does."""
    with connection.cursor() as cursor:
        cursor.execute(_SIGNS)
        row = cursor.fetchone()
    if row is None:
        return None
    number, place, here, next_xid, highest = row
    details = {"from": place, "to": here, "next_xid": next_xid, "highest_xid": highest}
    if place != here:
        return number, MOVED, details
    if highest is not None and highest >= next_xid:
        return number, BEHIND, details
    return None

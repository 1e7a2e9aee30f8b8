"""The emergency stop: anybody of those who may stops every send; two people let it go (SEC-30).

Resends are held as well; reads, re-plans and deadlines go on (T-13). Who may is for the caller
to say: plans know no roles.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import structlog
from django.db import OperationalError, connection, transaction
from django.utils.translation import gettext as _

from audit.actions import Action
from audit.actors import Actor
from audit.recording import Subject, record
from audit.statements import Statement
from plans.clock import clock
from plans.errors import InvalidNote, NotDecidable, NoteRequired, SecondPersonRequired
from plans.models import Attempt, EmergencyStop
from plans.models.switches import STOP_LOCK
from plans.retrying import retried

log = structlog.get_logger(__name__)

# A wish to release that nobody confirmed for so long says nothing about now.
CONFIRM_WITHIN: Final = timedelta(minutes=15)
MAX_REASON: Final = 500
SETTLE_MILLISECONDS: Final = 2_000
NOBODY_ASKED: Final = {
    "release_asked_at": None,
    "release_asked_by_id": "",
    "release_asked_by": "",
    "release_reason": "",
}


def reason_to_hold() -> str | None:
    """Why nothing may be sent, for the transaction of a claim: one query; None: send (T-3).

    A stop that is committed is seen by every claim that asks afterwards.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT plans_sends_stopped()")
        row = cursor.fetchone()
    reason: str | None = row[0]
    return reason


_STOPPED: Final = Statement(lambda: EmergencyStop.objects.filter(stopped_at__isnull=False))


def current() -> EmergencyStop | None:
    """The stop that is on, for pages; None: commits are sent."""
    return _STOPPED.first()


@retried
def stop(reason: str, *, actor: Actor) -> int:
    """Hold every send from here; how many commits were on their way to a target already.

    When it returns, no further send begins (SEC-30). A second stop renews the first, and nobody
    has asked for its release. Raises NoteRequired, InvalidNote (422).
    """
    reason = _reason(reason)
    with transaction.atomic():
        row = _locked()
        number, since = row.number + 1, row.stopped_at or clock()
        _write(
            number=number,
            stopped_at=since,
            stopped_by=actor.label[:200],
            reason=reason,
            **NOBODY_ASKED,
        )
        again = row.stopped_at is not None
        details = {"reason": reason, "number": number, "again": again}
        record(Action.EMERGENCY_STOPPED, actor, Subject(), details)
    _let_claims_end()
    return Attempt.objects.filter(outcome=Attempt.Outcome.OPEN).count()


@retried
def ask_release(reason: str, *, actor: Actor) -> bool:
    """The first of two people; False when somebody has asked already, and may be confirmed.

    Raises NoteRequired, InvalidNote (422), NotDecidable (409) when nothing is stopped.
    """
    reason = _reason(reason)
    with transaction.atomic():
        row = _locked()
        now = clock()
        if row.stopped_at is None:
            raise NotDecidable(_("Nothing is stopped."))
        if release_waits(row, now):
            return False
        _write(
            release_asked_at=now,
            release_asked_by_id=actor.id,
            release_asked_by=actor.label[:200],
            release_reason=reason,
        )
        details = {"reason": reason, "number": row.number}
        record(Action.EMERGENCY_RELEASE_ASKED, actor, Subject(), details)
    return True


@retried
def release(number: int, *, actor: Actor, may_release: Callable[[str], bool]) -> None:
    """The second person: commits are sent again (SEC-30).

    `number` is the stop's that the person was shown; `may_release` says of an actor's ID whether
    that person still may. Raises NotDecidable (409), SecondPersonRequired (403).
    """
    with transaction.atomic():
        row = _locked()
        now = clock()
        if row.stopped_at is None:
            raise NotDecidable(_("Nothing is stopped."))
        if row.number != number:
            raise NotDecidable(_("It was stopped again meanwhile: read why, and ask anew."))
        if not release_waits(row, now) or not may_release(row.release_asked_by_id):
            raise NotDecidable(_("Nobody who may has asked for it within the last 15 minutes."))
        if row.release_asked_by_id == actor.id:
            raise SecondPersonRequired(_("You asked for it; somebody else has to confirm."))
        details = {"reason": row.release_reason, "asked_by": row.release_asked_by}
        _release(row, Action.EMERGENCY_RELEASED, actor, details)


@retried
def break_glass(reason: str, *, actor: Actor) -> bool:
    """Release without a second person, from the terminal; an alarm. False: nothing is stopped.

    Raises NoteRequired, InvalidNote (422).
    """
    reason = _reason(reason)
    with transaction.atomic():
        row = _locked()
        if row.stopped_at is None:
            return False
        _release(row, Action.EMERGENCY_GLASS_BROKEN, actor, {"reason": reason})
    log.error("emergency.glass_broken", reason=reason, by=actor.label)
    return True


def release_waits(row: EmergencyStop, now: Any) -> bool:
    """Whether somebody has asked for the release, and it can still be confirmed."""
    return row.release_asked_at is not None and row.release_asked_at > now - CONFIRM_WITHIN


def _reason(text: str) -> str:
    text = text.strip()
    if not text:
        raise NoteRequired(_("Say why."), pointer="/reason")
    if len(text) > MAX_REASON or "\x00" in text:
        raise InvalidNote(
            _("A reason has at most {most} characters.").format(most=MAX_REASON),
            pointer="/reason",
        )
    return text


def _locked() -> EmergencyStop:
    """The one row under its lock; made when it is needed first."""
    EmergencyStop.objects.bulk_create([EmergencyStop()], ignore_conflicts=True)
    return EmergencyStop.objects.select_for_update().get()


def _write(**changes: Any) -> None:
    EmergencyStop.objects.update(**changes)


def _release(row: EmergencyStop, action: Action, actor: Actor, details: dict[str, Any]) -> None:
    _write(stopped_at=None, **NOBODY_ASKED)
    record(action, actor, Subject(), {**details, "number": row.number})


def _let_claims_end() -> None:
    """Wait for the claims that began before the stop; those that begin now see it.

    A claim takes milliseconds. One that hangs must not make the stop fail: it is committed.
    """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {SETTLE_MILLISECONDS}")
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [STOP_LOCK])
    except OperationalError as fault:
        log.warning("emergency.claims_still_running", fault=type(fault).__name__)

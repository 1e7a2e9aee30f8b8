"""How far the trail is sealed and who verified it last, as the audit page says it (L-3)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Self

from django.conf import settings
from django.db import transaction

from audit import actors
from audit.actions import Action
from audit.models import Event, Seal
from audit.offline.report import Report
from audit.recording import Subject, record
from audit.verification import checkpoints_file, verify

# So many events take about three seconds; the whole trail is the command's work.
MOST_AT_ONCE: Final = 30_000
LAG: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Standing:
    """`late`: events wait longer for their seal than they should; a writer or the sealer hangs."""

    seal: Seal | None
    verified: Event | None
    verified_to: datetime | None
    late: bool

    @classmethod
    def now(cls) -> Self:
        """Three rows, each found by an index; nothing is hashed."""
        seal = Seal.objects.defer("manifest").order_by("-number").first()
        newest = Event.objects.only("at", "era", "xid").order_by("-id").first()
        verified = Event.objects.filter(action=Action.AUDIT_VERIFIED).order_by("-id").first()
        text = verified.details.get("sealed_at") if verified else None
        late = newest is not None and datetime.now(UTC) - newest.at > LAG
        return cls(
            seal=seal,
            verified=verified,
            verified_to=datetime.fromisoformat(text) if text else None,
            late=late and not _covers(seal, newest),
        )


def _covers(seal: Seal | None, event: Event | None) -> bool:
    if seal is None or event is None:
        return False
    return (seal.era, seal.last_xid, seal.last_id) >= (event.era, event.xid, event.pk)


def verify_for(person: actors.Person) -> Report:
    """Verify the newest events now, and record who did and what was found."""
    path: Path | None = checkpoints_file(settings.AUDIT_CHECKPOINTS_FILE)
    report = verify(path, latest=MOST_AT_ONCE)
    told = report.as_json()
    details = {name: told[name] for name in ("holds", "found", "events", "seals", "from_seal")}
    details |= {"checkpoints": report.checkpoints, "sealed_at": told["sealed_at"]}
    if report.findings:
        details["first"] = str(report.findings[0])
    with transaction.atomic():
        record(Action.AUDIT_VERIFIED, actors.person(person), Subject(), details)
    return report

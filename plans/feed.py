"""The agent's events, in order, none missed, none twice (A-14)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Self

from django.db import connection
from django.db.models import Q

from audit.actions import Action
from audit.models import Event
from plans.errors import InvalidCursor
from plans.models import Agent
from plans.timestamps import rfc3339

# Besides every transition: what else happens to an intent that an agent acts on.
TOLD: Final = (
    Action.PLAN_SUBMITTED,
    Action.PLAN_ABANDON_NOTED,
    Action.INTENT_OPENED,
    Action.INTENT_SETTLED,
    Action.INTENT_PARKED,
    Action.INTENT_FAILED,
    Action.INTENT_ABANDONED,
    Action.REPLAN_QUEUED,
    Action.REPLAN_HANDED_TO_AGENT,
    Action.REPLAN_COMPLETED,
    Action.REPLAN_CANCELLED,
    Action.TASK_ENDED,
)
_CURSOR: Final = re.compile(r"e([0-9]{1,9})-([0-9]{1,18})-([0-9]{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last event read. Plain ids would lose rows whose transaction commits late."""

    era: int = 0
    xid: int = 0
    id: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """InvalidCursor (422) for a text that this server did not make."""
        found = _CURSOR.fullmatch(text)
        if found is None:
            raise InvalidCursor(pointer="/after")
        return cls(*map(int, found.groups()))

    def __str__(self) -> str:
        return f"e{self.era}-{self.xid}-{self.id}"


def read(agent: Agent, after: Cursor, limit: int) -> tuple[list[dict[str, Any]], Cursor]:
    """The next events of this agent's plans, and the cursor to go on from.

    Only rows of transactions below the snapshot's horizon: above it one may still commit with
    a smaller number than a row we would hand out now. An era that is over has no horizon.
    """
    rows = Event.objects.filter(_later(after, *_now()), agent=agent.name)
    told = rows.filter(~Q(to_status="") | Q(action__in=TOLD)).order_by("era", "xid", "id")
    events = list(told[:limit])
    end = Cursor(events[-1].era, events[-1].xid, events[-1].pk) if events else after
    return [as_item(event) for event in events], end


def _later(after: Cursor, horizon: int, era: int) -> Q:
    here = Q(era=after.era, xid__gte=after.xid) & (Q(xid__gt=after.xid) | Q(id__gt=after.id))
    if after.era == era:
        # Who reads along: an index leads to the place, however long the trail is.
        return here & Q(xid__lt=horizon)
    return (Q(era__gt=after.era) | here) & (Q(xid__lt=horizon) | Q(era__lt=era))


def _now() -> tuple[int, int]:
    """The snapshot's horizon, and the era in force."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, audit_current_era()"
        )
        horizon, era = cursor.fetchone()
    return horizon, era


def as_item(event: Event) -> dict[str, Any]:
    """One event as agents are told it."""
    return {
        "id": event.pk,
        "at": rfc3339(event.at),
        "type": event.action,
        "target": event.target or None,
        "plan_id": event.plan_id or None,
        "intent_id": str(event.intent_id) if event.intent_id else None,
        "task_id": event.task_id or None,
        "from": event.from_status or None,
        "to": event.to_status or None,
    }

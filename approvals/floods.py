"""Agents that ask for more than people can look at: said on the queue, with a way around them.

Whoever buries one bad plan under two hundred good ones counts on tired people (SEC-23).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.contrib.auth.models import User
from django.db.models import Count, F, Q, QuerySet

from approvals import queue
from approvals.queue import WHO
from audit.figures import Lines
from audit.models import ClockTimestamp
from plans.models.plans import Plan

# So many within a minute are more than a person reads in it.
A_MINUTE: Final = 10
# So many of one agent wait for me, and that is four fifths of what it may have waiting.
WAITING: Final = 20
SHARE: Final = 0.8
NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Flood:
    """One agent's plans that wait for this person; `fresh`: those of the last minute."""

    agent: str
    waiting: int
    fresh: int


def floods(user: User) -> list[Flood]:
    """The worst of them, the one with most waiting first; one query."""
    found = _FLOODS.all(person=user.pk)
    return [Flood(agent, waiting, fresh) for agent, _cap, waiting, fresh in found]


def _floods() -> QuerySet[Plan, Any]:
    lately = Q(received_at__gt=ClockTimestamp() - timedelta(minutes=1))
    agents = queue.needs_me(WHO).order_by().values_list("agent__name", "agent__pending_cap")
    counted = agents.annotate(waiting=Count("pk"), fresh=Count("pk", filter=lately))
    full = Q(waiting__gte=WAITING) & Q(waiting__gte=F("agent__pending_cap") * SHARE)
    return counted.filter(Q(fresh__gte=A_MINUTE) | full).order_by("-waiting", "agent__name")[:NAMED]


_FLOODS: Final = Lines(_floods)

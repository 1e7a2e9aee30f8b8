"""Plans whose time is over, by PostgreSQL's clock and nobody else's (B-3, C-1)."""

from __future__ import annotations

from typing import Final

from django.db import transaction
from django.db.models import QuerySet

from audit import actors
from audit.models import StatementTimestamp
from plans.clock import clock
from plans.lifecycle import Verb, transition
from plans.models import Plan
from plans.status import Status

# Past `decide_by` these are dead; a commit under way ends by its own rules (T-3, T-7).
WAITING: Final = (Status.VERIFYING, Status.PENDING, Status.APPROVED)


def expire(pk: int) -> None:
    """Close one plan whose time is over, by the clock after the lock (B-3)."""
    with transaction.atomic():
        plan = Plan.objects.locked_with_intent(pk)
        if plan.status in WAITING and plan.decide_by <= clock():
            transition(plan, Verb.EXPIRE, actor=actors.CLOCK)


def due(most: int) -> QuerySet[Plan, int]:
    """Plans past their `decide_by` that wait for people or for a first send; the sweep asks."""
    rows = Plan.objects.filter(status__in=WAITING, decide_by__lte=StatementTimestamp())
    return rows.order_by("decide_by").values_list("pk", flat=True)[:most]

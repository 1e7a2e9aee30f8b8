"""What waits for whom, and in which order (B-7, B-8, B-9). Every question here names a person."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any, Final, cast

from django.contrib.auth.models import Group, User
from django.db.models import BigIntegerField, DateTimeField, Exists, F, OuterRef, Q, QuerySet

from approvals.access import (
    Role,
    reviewable_plans,
    reviewed_by,
    visible_intents,
    visible_plans,
)
from approvals.models import Decision
from approvals.progress import tray as tray
from audit.models import ClockTimestamp
from audit.statements import Slot, Statement
from plans.clock import clock
from plans.models import Agent, Intent, Plan, Replan, Target
from plans.models.plans import PlanQuerySet
from plans.status import TERMINAL, Status

PAGE = 50
# Counts stop here: nobody reads "12,408", and a full count of a flood costs more than the page.
CAP = 1000
URGENT = timedelta(minutes=1)
ORDER = ("risk_rank", "decide_by", "pk")
ELSEWHERE = (
    Status.VERIFYING,
    Status.PENDING,
    Status.APPROVED,
    Status.COMMITTING,
    Status.UNKNOWN,
)


def needs_me(user: User | Slot) -> PlanQuerySet:
    """Plans on which this person can decide at this very moment (B-6, B-9, B-11)."""
    return (
        reviewable_plans(user)
        .filter(status=Status.PENDING, decide_by__gt=ClockTimestamp())
        .exclude(agent__in=_agents_of(user))
        .exclude(pk__in=_decided_by(user))
    )


def parked(user: User | Slot) -> PlanQuerySet:
    """The last plans of parked intents: planned again when this person opens them (R-3)."""
    return (
        reviewable_plans(user)
        .filter(intent__status=Intent.Status.PARKED, revision=F("intent__latest_revision"))
        .exclude(agent__in=_agents_of(user))
    )


def others(user: User | Slot) -> PlanQuerySet:
    """Plans on their way that somebody else, or nobody, has to act on."""
    return visible_plans(user).filter(
        ~Q(status=Status.PENDING)
        | Q(decide_by__lte=ClockTimestamp())
        | Q(agent__in=_agents_of(user))
        | ~Q(target__in=reviewed_by(user))
        | Q(pk__in=_decided_by(user)),
        status__in=ELSEWHERE,
    )


def done(user: User | Slot) -> PlanQuerySet:
    return visible_plans(user).filter(status__in=TERMINAL)


def unresolved(user: User | Slot) -> PlanQuerySet:
    """Plans whose outcome a person has to find out at the target (T-10), longest first."""
    return visible_plans(user).filter(status=Status.UNRESOLVED).order_by("status_at", "pk")


def replanning(user: User | Slot) -> QuerySet[Replan]:
    """Work that is making a fresh plan, or waits for its next try."""
    waiting = (Replan.Status.QUEUED, Replan.Status.LEASED)
    return Replan.objects.filter(intent__in=visible_intents(user).values("pk"), status__in=waiting)


def reviewed_targets(user: User) -> frozenset[int]:
    """Keys of the targets on whose plans this person may decide, their own agents' aside."""
    mine = Target.objects.filter(reviewers__in=user.groups.all())
    return frozenset(mine.values_list("pk", flat=True))


def waiting_replans(user: User, after: str) -> tuple[list[Replan], str]:
    """Every re-plan that waits for somebody, parked ones too, oldest first; and the next cursor."""
    seen = visible_intents(user).values("pk")
    found = with_subject(Replan.objects.waiting().filter(intent__in=seen)).order_by("pk")
    if after.isascii() and after.isdigit() and len(after) < 19:
        found = found.filter(pk__gt=int(after))
    page = list(found[: PAGE + 1])
    return page[:PAGE], str(page[PAGE - 1].pk) if len(page) > PAGE else ""


def seen_targets(user: User | Slot) -> QuerySet[Target]:
    """Targets whose plans this person sees; none: an empty queue says why it is empty."""
    groups = Group.objects.filter(user=cast("User", user))
    mine = Q(name=Role.MANAGERS) | Q(reviewed_targets=OuterRef("pk"))
    return Target.objects.filter(Exists(groups.filter(mine))).order_by("name")


def seen_agents(targets: Collection[Target | int]) -> QuerySet[Agent]:
    """Agents that have a plan there: the names of others are not this person's business."""
    theirs = Plan.objects.filter(agent=OuterRef("pk"), target__in=targets)
    return Agent.objects.filter(Exists(theirs)).order_by("name")


def _agents_of(user: User | Slot) -> QuerySet[Agent, int]:
    return Agent.objects.filter(owner=cast("User", user)).values_list("pk", flat=True)


def _decided_by(user: User | Slot) -> QuerySet[Decision, Any]:
    """Waiting plans with a decision of this person in their round: a short list, read once."""
    whose = Decision.objects.filter(person=cast("User", user), plan__status=Status.PENDING)
    mine = whose.filter(round=F("plan__round"))
    return mine.values_list("plan", flat=True)


def count(rows: QuerySet[Any]) -> int:
    """Up to CAP."""
    return rows.order_by()[:CAP].count()


WHO: Final = Slot("person", BigIntegerField())
SOON: Final = Slot("soon", DateTimeField())


def top(user: User) -> Plan | None:
    """The first row of Needs me, of which little more than its address is read."""
    values = {"person": user.pk, "soon": clock() + URGENT}
    return next((plan for part in _TOP for plan in part.all(**values)), None)


def _first(plans: PlanQuerySet) -> PlanQuerySet:
    address = plans.select_related("target").only("plan_id", "target__name")
    return address.order_by(*ORDER)[:1]


_TOP: Final = [
    Statement(lambda: _first(needs_me(WHO).filter(decide_by__lte=SOON)), spelled_out=True),
    Statement(lambda: _first(needs_me(WHO).filter(decide_by__gt=SOON)), spelled_out=True),
    Statement(lambda: _first(parked(WHO)), spelled_out=True),
]


def with_subject(replans: QuerySet[Replan]) -> QuerySet[Replan]:
    """With what a row names: the intent, and the dead plan where there is one."""
    return replans.select_related(
        "intent__target", "intent__operation", "intent__agent__owner", "plan__target"
    )

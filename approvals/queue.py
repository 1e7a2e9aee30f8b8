"""What waits for whom, and in which order (B-7, B-8, B-9). Every question here names a person."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, cast

from django.contrib.auth.models import User
from django.db.models import (
    BigIntegerField,
    DateTimeField,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    TextField,
)
from django.db.models.functions import Cast

from approvals.access import Role, in_group, reviewable_plans, visible_intents, visible_plans
from approvals.filters import Cursor, Filters, Part, Tab
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
# What a row shows; the rest of a plan (inputs, document, values) can be large.
ROW_FIELDS = (
    "plan_id",
    "title",
    "status",
    "status_at",
    "revision",
    "round",
    "verification",
    "risk",
    "risk_rank",
    "decide_by",
    "approvals_required",
    "approvals_given",
    "target__name",
    "operation__name",
    "operation__reversible",
    "agent__name",
    "agent__owner",
    "intent__status",
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


def others(user: User) -> PlanQuerySet:
    """Plans on their way that somebody else, or nobody, has to act on."""
    return visible_plans(user).filter(
        ~Q(status=Status.PENDING)
        | Q(decide_by__lte=ClockTimestamp())
        | Q(agent__in=_agents_of(user))
        | ~Q(target__in=reviewed_targets(user))
        | Q(pk__in=_decided_by(user)),
        status__in=ELSEWHERE,
    )


def done(user: User) -> PlanQuerySet:
    return visible_plans(user).filter(status__in=TERMINAL)


def unresolved(user: User) -> PlanQuerySet:
    """Plans whose outcome a person has to find out at the target (T-10), longest first."""
    return visible_plans(user).filter(status=Status.UNRESOLVED).order_by("status_at", "pk")


def replanning(user: User) -> QuerySet[Replan]:
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


def seen_targets(user: User) -> QuerySet[Target]:
    """Targets whose plans this person sees; none: an empty queue says why it is empty."""
    if in_group(user, Role.MANAGERS):
        return Target.objects.order_by("name")
    return Target.objects.filter(reviewers__in=user.groups.all()).distinct().order_by("name")


def seen_agents(targets: Collection[Target]) -> QuerySet[Agent]:
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


def counts(user: User, filters: Filters) -> dict[Tab, int]:
    """The numbers on the tabs, under the filters in force. Done has none: it only grows."""
    return {
        Tab.NEEDS_ME: count(filters.plans(needs_me(user))) + count(filters.plans(parked(user))),
        Tab.OTHERS: count(filters.plans(others(user))),
        Tab.REPLANNING: count(filters.replans(replanning(user))),
    }


@dataclass(frozen=True, slots=True)
class Found:
    """One row's plan and the stretch of the list that it stands in."""

    plan: Plan
    part: Part

    @property
    def changed(self) -> bool:
        """Whether it would do something else than the revision that it replaced."""
        return bool(getattr(self.plan, "does_something_else", False))


@dataclass(frozen=True, slots=True)
class Page:
    """Rows in order, PostgreSQL's clock, and the cursor of the next page ("" at the end)."""

    now: datetime
    plans: list[Found]
    replans: list[Replan]
    next: str = ""


def page(user: User, filters: Filters, size: int = PAGE) -> Page:
    """One page of a tab, by keyset: at most five queries, whatever the length of the list."""
    now = clock()
    if filters.tab is Tab.REPLANNING:
        return _replans(user, filters, now, size)
    after = filters.after
    as_of = after.as_of if after else now
    found: list[Found] = []
    for part, rows in _parts(user, filters, as_of):
        if after and after.part != part:
            continue
        if after:
            rows, after = rows.filter(_beyond(filters.tab, after)), None
        wanted = size + 1 - len(found)
        found += [Found(plan, part) for plan in _lean(rows)[:wanted]]
        if len(found) > size:
            break
    return Page(now, found[:size], [], _next(found, as_of, size))


def top(user: User) -> Plan | None:
    """The first row of Needs me with all its names: where a decision leads to."""
    values = {"person": user.pk, "soon": clock() + URGENT}
    return next((plan for part in _TOP for plan in part.all(**values)), None)


def _first(plans: PlanQuerySet) -> PlanQuerySet:
    return plans.order_by(*ORDER).with_names()[:1]


_WHO: Final = Slot("person", BigIntegerField())
_SOON: Final = Slot("soon", DateTimeField())
_TOP: Final = [
    Statement(lambda: _first(needs_me(_WHO).filter(decide_by__lte=_SOON))),
    Statement(lambda: _first(needs_me(_WHO).filter(decide_by__gt=_SOON))),
    Statement(lambda: _first(parked(_WHO))),
]


def _parts(user: User, filters: Filters, as_of: datetime) -> Iterator[tuple[Part, PlanQuerySet]]:
    """Needs me: what is under a minute, then the rest, then what is planned on open."""
    if filters.tab is Tab.NEEDS_ME:
        mine, soon = filters.plans(needs_me(user)), as_of + URGENT
        yield Part.URGENT, mine.filter(decide_by__lte=soon).order_by(*ORDER)
        yield Part.REST, mine.filter(decide_by__gt=soon).order_by(*ORDER)
        yield Part.PARKED, filters.plans(parked(user)).order_by(*ORDER)
    elif filters.tab is Tab.OTHERS:
        yield Part.REST, filters.plans(others(user)).order_by(*ORDER)
    else:
        yield Part.REST, filters.plans(done(user)).order_by("-pk")


def _beyond(tab: Tab, after: Cursor) -> Q:
    return Q(pk__lt=after.pk) if tab is Tab.DONE else after.beyond()


# Compared as text, in which 1 and 1.0 differ, as they do on the plan's page.
_UNLIKE_WHAT_IT_REPLACES: Final = (
    Plan.objects.filter(pk=OuterRef("replaces_id"))
    .annotate(was=Cast("actions", TextField()))
    .exclude(was=Cast(OuterRef("actions"), TextField()))
)


def _lean(plans: PlanQuerySet) -> PlanQuerySet:
    rows = plans.annotate(does_something_else=Exists(_UNLIKE_WHAT_IT_REPLACES))
    return rows.select_related("target", "operation", "agent", "intent").only(*ROW_FIELDS)


def _next(found: list[Found], as_of: datetime, size: int) -> str:
    if len(found) <= size:
        return ""
    last = found[size - 1]
    plan = last.plan
    return Cursor(last.part, as_of, plan.risk_rank, plan.decide_by, plan.pk).encode()


def _replans(user: User, filters: Filters, now: datetime, size: int) -> Page:
    """Oldest first: what has waited longest is what somebody should look at."""
    rows = with_subject(filters.replans(replanning(user))).order_by("pk")
    if filters.after:
        rows = rows.filter(pk__gt=filters.after.pk)
    found = list(rows[: size + 1])
    more = len(found) > size
    cursor = Cursor(Part.REST, now, 0, now, found[size - 1].pk).encode() if more else ""
    return Page(now, [], found[:size], cursor)


def with_subject(replans: QuerySet[Replan]) -> QuerySet[Replan]:
    """With what a row names: the intent, and the dead plan where there is one."""
    return replans.select_related(
        "intent__target", "intent__operation", "intent__agent__owner", "plan__target"
    )

"""Pages of the lists: by keyset, from statements composed once for each kind of question."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from django.contrib.auth.models import User
from django.db.models import (
    BigIntegerField,
    DateTimeField,
    Exists,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    TextField,
)
from django.db.models.functions import Cast

from approvals import alike, queue
from approvals.filters import Cursor, Filters, Part, Tab
from approvals.narrowing import Narrowing, Shape
from approvals.queue import ORDER, SOON, URGENT, WHO
from audit.statements import Slot, Statement
from plans.clock import clock
from plans.models import Plan, Replan
from plans.models.plans import PlanQuerySet

# Twice what a desk shows at once.
PAGE: Final = 30
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
    "likeness",
    "decide_by",
    "received_at",
    "approvals_required",
    "approvals_given",
    "target__name",
    "operation__name",
    "operation__reversible",
    "agent__name",
    "agent__owner",
    "intent__status",
)
_RANK: Final = Slot("rank", IntegerField())
_AT: Final = Slot("at", DateTimeField())
_PK: Final = Slot("pk", BigIntegerField())


@dataclass(frozen=True, slots=True)
class Found:
    """One row's plan and the stretch of the list that it stands in.

    `alike` counts the plans that stand in this row, it among them; `others` are the rest of them,
    where the row is open: as many as one page shows.
    """

    plan: Plan
    part: Part
    others: list[Found] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether it would do something else than the revision that it replaced."""
        return bool(getattr(self.plan, "does_something_else", False))

    @property
    def alike(self) -> int:
        return int(getattr(self.plan, "alike", 1))


@dataclass(frozen=True, slots=True)
class Page:
    """Rows in order, PostgreSQL's clock, and the cursor of the next page ("" at the end)."""

    now: datetime
    plans: list[Found]
    replans: list[Replan]
    next: str = ""


def page(
    user: User, filters: Filters, size: int = PAGE, narrowing: Narrowing | None = None
) -> Page:
    """One page of a tab, by keyset: at most five queries, whatever the length of the list."""
    narrowing, now = narrowing or Narrowing.by(filters), clock()
    values = narrowing.values | {"person": user.pk}
    if filters.tab is Tab.REPLANNING:
        return _replans(filters, narrowing, now, size, values)
    after = filters.after
    as_of = after.as_of if after else now
    values["soon"] = as_of + URGENT
    found: list[Found] = []
    for part in _PARTS[filters.tab]:
        if after and after.part != part:
            continue
        statement = _rows(filters.tab, part, narrowing.shape, bool(after), size + 1)
        place, after = after.place if after else {}, None
        found += [Found(plan, part) for plan in statement.all(**values, **place)]
        if len(found) > size:
            break
    _unfold(found[:size], filters, narrowing, values)
    return Page(now, found[:size], [], _next(found, as_of, size))


# Needs me: what is under a minute, then the rest, then what is planned on open.
_PARTS: Final = {
    Tab.NEEDS_ME: (Part.URGENT, Part.REST, Part.PARKED),
    Tab.OTHERS: (Part.REST,),
    Tab.DONE: (Part.REST,),
}


@lru_cache(maxsize=1024)
def _rows(tab: Tab, part: Part, shape: Shape, goes_on: bool, size: int) -> Statement[Plan]:
    """The rows of one stretch of a list, from its beginning or after a place."""

    def build() -> PlanQuerySet:
        plans = _stretch(tab, part, shape)
        if tab is Tab.NEEDS_ME:
            plans = alike.folded(plans, _stretch(tab, part, shape))
        if goes_on:
            plans = plans.filter(Q(pk__lt=_PK) if tab is Tab.DONE else _BEYOND)
        return _lean(plans.order_by(*(("-pk",) if tab is Tab.DONE else ORDER)))[:size]

    # A word that is in every plan is found by looking back, a rare one by the index.
    searches = tab is Tab.DONE and shape.words is not None
    return Statement(build, spelled_out=True, planned_anew=searches)


def _stretch(tab: Tab, part: Part, shape: Shape) -> PlanQuerySet:
    if tab is Tab.OTHERS:
        return shape.plans(queue.others(WHO))
    if tab is Tab.DONE:
        return shape.plans(queue.done(WHO), over=True)
    if part is Part.PARKED:
        return shape.plans(queue.parked(WHO))
    soon = {"decide_by__lte": SOON} if part is Part.URGENT else {"decide_by__gt": SOON}
    return shape.plans(queue.needs_me(WHO).filter(**soon))


# Rows after a place in the order risk, decide_by, id.
_BEYOND: Final = Q(risk_rank__gte=_RANK) & (
    Q(risk_rank__gt=_RANK) | Q(decide_by__gt=_AT) | Q(decide_by=_AT, pk__gt=_PK)
)
# Compared as text, in which 1 and 1.0 differ, as they do on the plan's page.
_UNLIKE_WHAT_IT_REPLACES: Final = (
    Plan.objects.filter(pk=OuterRef("replaces_id"))
    .annotate(was=Cast("actions", TextField()))
    .exclude(was=Cast(OuterRef("actions"), TextField()))
)


def _lean(plans: PlanQuerySet) -> PlanQuerySet:
    rows = plans.annotate(does_something_else=Exists(_UNLIKE_WHAT_IT_REPLACES))
    return rows.select_related("target", "operation", "agent", "intent").only(*ROW_FIELDS)


@lru_cache(maxsize=256)
def _members(part: Part, shape: Shape) -> Statement[Plan]:
    """The plans that stand in one row, but for the one that it shows."""

    def build() -> PlanQuerySet:
        plans = alike.like(_stretch(Tab.NEEDS_ME, part, shape))
        return _lean(plans.exclude(pk=_PK).order_by(*ORDER))[:PAGE]

    return Statement(build, spelled_out=True)


def _unfold(
    found: list[Found], filters: Filters, narrowing: Narrowing, values: dict[str, Any]
) -> None:
    """Put the others into the row that is open; one query for each such row."""
    for row in found:
        if filters.open and row.plan.likeness == filters.open and row.alike > 1:
            own = {"likeness": filters.open, "given": row.plan.approvals_given, "pk": row.plan.pk}
            rest = _members(row.part, narrowing.shape).all(**values, **own)
            row.others.extend(Found(plan, row.part) for plan in rest)


def _next(found: list[Found], as_of: datetime, size: int) -> str:
    if len(found) <= size:
        return ""
    last = found[size - 1]
    plan = last.plan
    return Cursor(last.part, as_of, plan.risk_rank, plan.decide_by, plan.pk).encode()


def _replans(
    filters: Filters, narrowing: Narrowing, now: datetime, size: int, values: dict[str, Any]
) -> Page:
    """Oldest first: what has waited longest is what somebody should look at."""
    place = {"pk": filters.after.pk} if filters.after else {}
    found = _work(narrowing.shape, bool(place), size + 1).all(**values, **place)
    more = len(found) > size
    cursor = Cursor(Part.REST, now, 0, now, found[size - 1].pk).encode() if more else ""
    return Page(now, [], found[:size], cursor)


@lru_cache(maxsize=256)
def _work(shape: Shape, goes_on: bool, size: int) -> Statement[Replan]:
    def build() -> QuerySet[Replan]:
        rows = queue.with_subject(shape.replans(queue.replanning(WHO))).order_by("pk")
        return (rows.filter(pk__gt=_PK) if goes_on else rows)[:size]

    return Statement(build, spelled_out=True)

"""What became of my decisions, in one line each: the strip above the plan (B-8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final

from django.contrib.auth.models import User
from django.db.models import BigIntegerField, Exists, F, Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.models import Decision
from audit.models import ClockTimestamp
from audit.statements import Slot, Statement
from plans.models import EmergencyStop, Plan
from plans.status import Status

# These are still moving.
MOVING: Final = frozenset({Status.APPROVED, Status.COMMITTING, Status.UNKNOWN})
# These stay until the person has said "seen".
STAYS: Final = frozenset(
    {Status.UNRESOLVED, Status.CONFLICTED, Status.FAILED, Status.EXPIRED, Status.STALE}
)
# Decisions that are done with, or wait for other people: they are said, and leave by themselves.
STEPS: Final = (
    (Decision.Verdict.APPROVE, Status.PENDING),
    (Decision.Verdict.REQUEST_CHANGES, Status.CHANGES_REQUESTED),
    (Decision.Verdict.REJECT, Status.REJECTED),
)
# They and a committed one stay this long.
LINGERS: Final = timedelta(minutes=1)
SHOWN: Final = 20
# Older decisions have their place in the audit trail.
REACHES_BACK: Final = timedelta(days=7)

_SIGNS: Final = {
    Status.COMMITTED: ("✓", "good"),
    Status.APPROVED: ("↻", "info"),
    Status.COMMITTING: ("↻", "info"),
    Status.UNKNOWN: ("↻", "warn"),
    Status.PENDING: ("✓", "info"),
    Status.CHANGES_REQUESTED: ("✓", "info"),
    Status.REJECTED: ("✓", "info"),
}
_HELD: Final = ("‖", "warn")


# What a line of the strip is made from.
_FIELDS: Final = (
    "verdict",
    "plan__plan_id",
    "plan__title",
    "plan__status",
    "plan__approvals_given",
    "plan__approvals_required",
    "plan__approved_at",
    "plan__first_sent_at",
    "plan__closed_at",
    "plan__target__name",
    "plan__replaced_by__replaces",
    "plan__replaced_by__revision",
)


@dataclass(frozen=True, slots=True)
class Progress:
    """One decision of mine: its plan, what happened so far, and whether it can be put away."""

    decision: int
    subject: str
    url: str
    sentence: str
    sign: str
    tone: str
    dismissable: bool


def tray(user: User) -> list[Progress]:
    """The progress of this person's decisions (B-8), in one query.

    What stays until it is put away comes first, then the newest.
    """
    held: Callable[[Decision], bool] = attrgetter("held")
    lines = [progress(mine, held=held(mine)) for mine in _TRAY.all(person=user.pk)]
    return sorted(lines, key=lambda line: not line.dismissable)


def _tray() -> QuerySet[Decision]:
    mine = _shown_in_tray(ClockTimestamp()).filter(
        person=Slot("person", BigIntegerField()), round=F("plan__round"), dismissed=False
    )
    held = EmergencyStop.objects.filter(stopped_at__isnull=False)
    rows = mine.select_related("plan__target", "plan__replaced_by").only(*_FIELDS)
    return rows.annotate(held=Exists(held)).order_by("-pk")[:SHOWN]


_TRAY: Final = Statement(_tray)


def _shown_in_tray(now: ClockTimestamp) -> QuerySet[Decision]:
    """Approvals that go on or went wrong; what is done and needs nothing more, for a minute."""
    recently = Q(plan__status=Status.COMMITTED, plan__closed_at__gt=now - LINGERS)
    approvals = Q(verdict=Decision.Verdict.APPROVE) & (
        Q(plan__status__in=MOVING | STAYS) | recently
    )
    steps = Q()
    for verdict, status in STEPS:
        steps |= Q(verdict=verdict, plan__status=status)
    return Decision.objects.filter(
        approvals | (steps & Q(decided_at__gt=now - LINGERS)),
        decided_at__gt=now - REACHES_BACK,
    )


def progress(decision: Decision, *, held: bool = False) -> Progress:
    """`held`: the emergency stop is on, so that nothing is sent, resends neither (SEC-30)."""
    plan = decision.plan
    status = Status(plan.status)
    held = held and _is_held(plan, status)
    sign, tone = _HELD if held else _SIGNS.get(status, ("!", "bad"))
    return Progress(
        decision=decision.pk,
        subject=plan.title or plan.plan_id,
        url=reverse("plan", args=[plan.target.name, plan.plan_id]),
        sentence=_while_held(status) if held else _sentence(plan, status),
        sign=sign,
        tone=tone,
        dismissable=status in STAYS or status == Status.UNKNOWN,
    )


def _is_held(plan: Plan, status: Status) -> bool:
    """What has left for its target already is not: its answer may come."""
    unsent = status == Status.COMMITTING and plan.first_sent_at is None
    return unsent or status in (Status.APPROVED, Status.UNKNOWN)


def _while_held(status: Status) -> str:
    if status == Status.UNKNOWN:
        return _("not confirmed yet, and not retried while sending is stopped")
    return _("approved, waits: sending is stopped")


def _sentence(plan: Plan, status: Status) -> str:
    if status in (Status.PENDING, Status.REJECTED):
        return _of_step(plan, status)
    meanwhile = _("it is being planned again")
    if status == Status.CHANGES_REQUESTED:
        meanwhile = _("the agent is asked to plan again")
    text = str(_SAYS.get(status, _SAYS[Status.STALE]))
    after = _after(plan, plan.closed_at if status == Status.COMMITTED else plan.first_sent_at)
    follows = _what_follows(plan) or meanwhile
    return text.format(target=plan.target.name, after=after, next=follows)


_SAYS: Final = {
    Status.CHANGES_REQUESTED: gettext_lazy("changes requested: {next}"),
    Status.COMMITTED: gettext_lazy("committed{after}"),
    Status.APPROVED: gettext_lazy("approved, about to be sent to {target}"),
    Status.COMMITTING: gettext_lazy("sent to {target}{after}"),
    Status.UNKNOWN: gettext_lazy("not confirmed yet, retrying with the same key"),
    Status.UNRESOLVED: gettext_lazy("not confirmed: look at {target}"),
    Status.CONFLICTED: gettext_lazy("not applied, the world moved: {next}"),
    Status.FAILED: gettext_lazy("not applied: {target} refused it"),
    Status.EXPIRED: gettext_lazy("not applied, its time ran out: {next}"),
    Status.STALE: gettext_lazy("not applied, something wrote to it first: {next}"),
}


def _of_step(plan: Plan, status: Status) -> str:
    """A decision after which nothing is sent, or nothing yet."""
    if status == Status.PENDING:
        text = _("approved, {given} of {required}: not sent yet")
        return text.format(given=plan.approvals_given, required=plan.approvals_required)
    return _("rejected, nothing is applied")


def _what_follows(plan: Plan) -> str:
    """Its successor, once there is one."""
    successor: Plan | None = getattr(plan, "replaced_by", None)
    if successor is None:
        return ""
    return _("revision {number} took its place").format(number=successor.revision)


def _after(plan: Plan, instant: datetime | None) -> str:
    """`, 38 ms after approval`, from instants that PostgreSQL wrote."""
    if plan.approved_at is None or instant is None:
        return ""
    milliseconds = max(0, round((instant - plan.approved_at).total_seconds() * 1000))
    if milliseconds < 1000:
        return _(", {number} ms after approval").format(number=milliseconds)
    return _(", {number} s after approval").format(number=f"{milliseconds / 1000:.1f}")

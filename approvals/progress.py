"""What became of my decisions, in one line each: the strip above the plan (B-8)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.urls import reverse

from approvals.models import Decision
from plans.models import Plan
from plans.status import Status

# These are still moving, so the strip asks again by itself.
MOVING: Final = frozenset({Status.APPROVED, Status.COMMITTING, Status.UNKNOWN})
# These stay until the person has said "seen".
STAYS: Final = frozenset(
    {Status.UNRESOLVED, Status.CONFLICTED, Status.FAILED, Status.EXPIRED, Status.STALE}
)
# A committed one leaves by itself after this long.
LINGERS: Final = timedelta(minutes=1)
SHOWN: Final = 20
# Older decisions have their place in the audit trail.
REACHES_BACK: Final = timedelta(days=7)

_SIGNS: Final = {
    Status.COMMITTED: ("✓", "good"),
    Status.APPROVED: ("↻", "info"),
    Status.COMMITTING: ("↻", "info"),
    Status.UNKNOWN: ("↻", "warn"),
}


@dataclass(frozen=True, slots=True)
class Progress:
    """One approval of mine: its plan, what happened so far, and whether it can be put away."""

    decision: int
    subject: str
    url: str
    sentence: str
    sign: str
    tone: str
    moving: bool
    dismissable: bool


def progress(decision: Decision) -> Progress:
    plan = decision.plan
    status = Status(plan.status)
    sign, tone = _SIGNS.get(status, ("!", "bad"))
    return Progress(
        decision=decision.pk,
        subject=plan.title or plan.plan_id,
        url=reverse("plan", args=[plan.target.name, plan.plan_id]),
        sentence=_sentence(plan, status),
        sign=sign,
        tone=tone,
        moving=status in MOVING,
        dismissable=status in STAYS or status == Status.UNKNOWN,
    )


def _sentence(plan: Plan, status: Status) -> str:
    target = plan.target.name
    match status:
        case Status.COMMITTED:
            return f"committed{_after(plan, plan.closed_at)}"
        case Status.APPROVED:
            return f"approved, about to be sent to {target}"
        case Status.COMMITTING:
            return f"sent to {target}{_after(plan, plan.first_sent_at)}"
        case Status.UNKNOWN:
            return "not confirmed yet, retrying with the same key"
        case Status.UNRESOLVED:
            return f"not confirmed: look at {target}"
        case Status.CONFLICTED:
            return f"not applied, the world moved: {_what_follows(plan)}"
        case Status.FAILED:
            return f"not applied: {target} refused it"
        case Status.EXPIRED:
            return f"not applied, its time ran out: {_what_follows(plan)}"
        case _:
            return f"not applied, something wrote to it first: {_what_follows(plan)}"


def _what_follows(plan: Plan) -> str:
    """Only what is so: its successor by now, or the work on one."""
    successor: Plan | None = getattr(plan, "replaced_by", None)
    if successor is None:
        return "it is being planned again"
    return f"revision {successor.revision} took its place"


def _after(plan: Plan, instant: datetime | None) -> str:
    """`, 38 ms after approval`, from instants that PostgreSQL wrote."""
    if plan.approved_at is None or instant is None:
        return ""
    milliseconds = max(0, round((instant - plan.approved_at).total_seconds() * 1000))
    if milliseconds < 1000:
        return f", {milliseconds} ms after approval"
    return f", {milliseconds / 1000:.1f} s after approval"

"""A row of the review list, worked out before the template sees it: 50 of them are one page."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.filters import Part, Tab
from approvals.lists import Found, Page
from approvals.warnings import Stage, stage
from audit.safe_text import visible
from plans.models import Plan, Replan
from plans.status import Status

SOON_MS: Final = 60_000
_TONES: Final = {
    Status.COMMITTED: "good",
    Status.FAILED: "bad",
    Status.MISMATCHED: "bad",
    Status.CONFLICTED: "warn",
    Status.STALE: "warn",
    Status.EXPIRED: "warn",
    Status.UNKNOWN: "warn",
    Status.COMMITTING: "info",
    Status.APPROVED: "info",
}


@dataclass(frozen=True, slots=True)
class Row:
    """`decide_in_ms` is None where nothing runs out; `at` then says since when.

    `alike`: how many plans besides its own stand in this row, `likeness` what they have in common;
    `opened`: they follow it, each `within` this row, as many of them as `opened` says.
    """

    key: str
    title: str
    url: str
    what: str
    risk: str
    at: datetime
    decide_in_ms: int | None = None
    # Of what this person can decide: they are warned while it runs out.
    window_ms: int = 0
    # The two as texts: numbers are made readable for people, and these are for a script.
    ends: str = ""
    window: str = ""
    badges: list[tuple[str, str]] = field(default_factory=list)
    plan_again: str = ""
    alike: int = 0
    likeness: str = ""
    opened: int = 0
    within: bool = False

    @property
    def soon(self) -> bool:
        return self.decide_in_ms is not None and self.decide_in_ms < SOON_MS

    @property
    def stage(self) -> Stage:
        """How much of its window is left, where it warns."""
        return stage(self.decide_in_ms or 0, self.window_ms) if self.window_ms else Stage.PLENTY


def rows(page: Page, tab: Tab, user: User) -> list[Row]:
    if tab is Tab.REPLANNING:
        return [_of_replan(replan) for replan in page.replans]
    shown = ((each, each is not found) for found in page.plans for each in (found, *found.others))
    return [_of_plan(found, tab, user, page.now, within=within) for found, within in shown]


def url_of(plan: Plan) -> str:
    """Names and plan IDs hold nothing that an address would have to escape (BI-29)."""
    return f"{_address_of(plan.target.name)}{plan.plan_id}/"


@lru_cache(maxsize=1024)
def _address_of(target: str) -> str:
    return reverse("plan", args=[target, "-"]).removesuffix("-/")


def _of_plan(found: Found, tab: Tab, user: User, now: datetime, *, within: bool) -> Row:
    plan = found.plan
    waits = plan.status == Status.PENDING and found.part is not Part.PARKED
    left = _milliseconds(plan, now) if waits else None
    window = plan.window_ms if waits and tab is Tab.NEEDS_ME else 0
    return Row(
        key=f"plan-{plan.pk}",
        title=plan.title or f"{plan.operation.name} · {plan.plan_id}",
        url=url_of(plan),
        what=_what(plan),
        risk=plan.risk,
        at=plan.status_at,
        decide_in_ms=left,
        window_ms=window,
        ends="" if left is None else str(left),
        window=str(window or ""),
        badges=_badges(found, tab, user),
        plan_again=_plan_again(plan) if found.part is Part.PARKED else "",
        alike=found.alike - 1,
        likeness=plan.likeness if found.alike > 1 else "",
        opened=len(found.others),
        within=within,
    )


def _milliseconds(plan: Plan, now: datetime) -> int:
    return max(0, round((plan.decide_by - now).total_seconds() * 1000))


def _plan_again(plan: Plan) -> str:
    return reverse("plan_again", args=[plan.intent_id])


def _what(plan: Plan) -> str:
    what = f"{plan.target.name}.{plan.operation.name} · {plan.agent.name}"
    if plan.revision == 1:
        return what
    return f"{what} · {_('rev {number}').format(number=plan.revision)}"


def _badges(found: Found, tab: Tab, user: User) -> list[tuple[str, str]]:
    """What is special, as (tone, words), in the same order in every row."""
    plan, part = found.plan, found.part
    if tab is Tab.DONE:
        return [(_TONES.get(Status(plan.status), "quiet"), plan.get_status_display())]
    badges = []
    if found.alike > 1:
        badges.append(("info", _("{number} alike").format(number=found.alike)))
    if part is Part.PARKED:
        return [*badges, ("quiet", _("plan on open"))]
    if plan.status != Status.PENDING:
        badges.append((_TONES.get(Status(plan.status), "quiet"), plan.get_status_display()))
    elif plan.agent.owner_id == user.pk:
        badges.append(("quiet", _("your agent")))
    if found.changed:
        badges.append(("warn", _("changed")))
    if plan.approvals_required > 1:
        given, required = plan.approvals_given, plan.approvals_required
        text = _("{given} of {required} approved")
        badges.append(("quiet", text.format(given=given, required=required)))
    if plan.verification == Plan.Verification.UNAVAILABLE:
        badges.append(("bad", _("not verified")))
    if not plan.operation.reversible:
        badges.append(("bad", _("irreversible")))
    return badges


def _of_replan(replan: Replan) -> Row:
    intent, plan = replan.intent, replan.plan
    return Row(
        key=f"replan-{replan.pk}",
        title=subject_of(replan),
        # A first dry run has no plan to open: its row leads to the page of re-plans.
        url=url_of(plan) if plan else reverse("replans"),
        what=f"{intent.target.name}.{intent.operation.name} · {intent.agent.name}",
        risk=plan.risk if plan else intent.operation.risk,
        at=replan.created_at,
        badges=[("warn", replan.get_cause_display()), ("info", _whose_turn(replan))],
    )


def subject_of(replan: Replan) -> str:
    """The dead plan's sentence, or what is known where no plan has died."""
    if replan.plan:
        return replan.plan.title or replan.plan.plan_id
    task = visible(replan.intent.task_id)
    first = replan.cause == Replan.Cause.FIRST
    text = _("First dry run of task {task}") if first else _("Fresh plan for task {task}")
    return text.format(task=task)


_CAUSES: Final = {
    Replan.Cause.FIRST: gettext_lazy("It is the first dry run."),
    Replan.Cause.EXPIRED: gettext_lazy("The time to decide ran out."),
    Replan.Cause.CONFLICTED: gettext_lazy("The world moved, so the target refused it."),
    Replan.Cause.STALE: gettext_lazy("Something that it covers was written after it was planned."),
    Replan.Cause.CHANGES_REQUESTED: gettext_lazy("A reviewer asked for changes."),
    Replan.Cause.PERSON: gettext_lazy("A person asked for a fresh plan."),
    Replan.Cause.OPENED: gettext_lazy("A reviewer opened it with little time left."),
}


def why(replan: Replan) -> str:
    """The cause in words, with the fields that moved where the target named them."""
    words = str(_CAUSES[Replan.Cause(replan.cause)])
    changed = (replan.plan.conflict or {}).get("changed") if replan.plan else None
    if not changed:
        return words
    moved = ", ".join(visible(str(change.get("path", "?"))) for change in changed)
    return _("{why} Changed: {moved}.").format(why=words, moved=moved)


def _whose_turn(replan: Replan) -> str:
    if replan.mode == "agent":
        return _("the agent's turn")
    return _("planning now") if replan.status == Replan.Status.LEASED else _("waiting")

"""What is new since the revision that the reviewer last saw, and why there is a new one (R-2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.html import format_html
from django.utils.translation import gettext as _

from approvals import changes, rendering, titles
from approvals.models import Decision
from approvals.rendering import MISSING, Missing, Shown
from audit import phrases
from audit.templatetags.times import clock
from plans.models import Plan, Replan
from plans.problem import Problem
from plans.status import Status
from plans.strict_json import JsonValue
from plans.timestamps import parse_instant

AT_ONCE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Moved:
    """A field that was not any more what the plan was made from. Raw values where they differ."""

    object: str
    field: str
    planned: Shown
    current: Shown
    raw: str


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a revision died: what moved, then a sentence that goes on from there."""

    moved: list[Moved]
    sentence: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Both ends of one change, in one revision."""

    before: Shown
    after: Shown


@dataclass(frozen=True, slots=True)
class Difference:
    """One change that the two revisions do not share; None where a revision lacks it."""

    object: Shown
    field: Shown
    was: Pair | None
    now: Pair | None
    twin: str


@dataclass(frozen=True, slots=True)
class News:
    """`headline` compares the titles' values: (now, was), empty where there are none."""

    since: Plan
    causes: list[Cause]
    again: str
    headline: tuple[str, str]
    differences: list[Difference]
    elsewhere: list[str]

    @property
    def headline_moved(self) -> bool:
        return all(self.headline) and self.headline[0] != self.headline[1]

    @property
    def identical(self) -> bool:
        return not self.differences and not self.elsewhere


def news(plan: Plan, revisions: Sequence[Plan], seen: Plan | None) -> News | None:
    """The difference to `seen` (None: to the replaced plan), with the cause of every death between.

    `revisions` are the intent's plans in order, each with its re-plan and its decisions loaded.
    """
    earlier = [old for old in revisions if old.revision < plan.revision]
    since = seen or next((old for old in earlier if old.pk == plan.replaces_id), None)
    if since is None:
        return None
    dead = [old for old in earlier if old.revision >= since.revision]
    return News(
        since=since,
        causes=[cause(old, plan) for old in dead],
        again=_again(dead[-1], plan),
        headline=(titles.headline(plan), titles.headline(since)),
        differences=differences(since, plan),
        elsewhere=_elsewhere(since, plan),
    )


def differences(old: Plan, new: Plan) -> list[Difference]:
    """Changes that are not the same in both, in the order of the new plan."""
    was, now = _by_place(old), _by_place(new)
    places = [*now, *(place for place in was if place not in now)]
    return [
        _difference(new, place, was.get(place), now.get(place))
        for place in places
        if _ends(was.get(place)) != _ends(now.get(place))
    ]


def cause(dead: Plan, successor: Plan) -> Cause:
    """Why this revision is not the one to decide on, in words."""
    text, more = _("Revision {number} is {status}."), {"status": dead.get_status_display()}
    match dead.status:
        case Status.CONFLICTED:
            return _conflict(dead)
        case Status.EXPIRED:
            text = _("Revision {number} expired before it was decided ({at}).")
            if dead.approved_at:
                text = _("Revision {number} expired before it was sent ({at}).")
            more = {"at": clock(dead.closed_at or dead.expires_at)}
        case Status.STALE:
            text = _("Revision {number} became stale: what it covers was written since.")
        case Status.CHANGES_REQUESTED | Status.REJECTED:
            return Cause([], _verdict(dead))
        case Status.FAILED:
            told = (dead.problem or {}).get("detail") or ""
            text, more = _("{target} refused revision {number}."), {}
            return Cause([], f"{_say(dead, text)} {rendering.prose(str(told))}".strip())
        case Status.SUPERSEDED:
            return Cause([], _superseded(dead, successor))
    return Cause([], _say(dead, text, **more))


def moved(plan: Plan) -> list[Moved]:
    """The fields that the target named when it refused (T-7); empty when it named none."""
    changed = (plan.conflict or {}).get("changed") or []
    return [_moved(plan, item) for item in changed if isinstance(item, dict)]


def _say(dead: Plan, text: str, **more: object) -> str:
    """A sentence about a revision, as HTML: it may hold a time."""
    return format_html(text, number=dead.revision, target=dead.target.name, **more)


def _conflict(dead: Plan) -> Cause:
    """Goes on from the moved fields: `… after revision 1 was planned at 09:31:12, so …`."""
    status = (dead.problem or {}).get("status") or 409
    fields = moved(dead)
    text = _(
        "Something moved after revision {number} was planned at {at}, so {target} refused it "
        "({status})."
    )
    if fields:
        text = _("after revision {number} was planned at {at}, so {target} refused it ({status}).")
    return Cause(fields, _say(dead, text, at=clock(_planned_at(dead)), status=status))


def _planned_at(plan: Plan) -> datetime:
    """The target's word for it, where it gave one that can be read."""
    told = (plan.conflict or {}).get("plan_created_at")
    try:
        return parse_instant(told, "") if told else plan.plan_created_at
    except Problem:
        return plan.plan_created_at


def _moved(plan: Plan, item: dict[str, Any]) -> Moved:
    """`path` is a field, or an object and a field; the object may stand beside it."""
    path = str(item.get("path", ""))
    field = _field_of(plan, path)
    stem = path.removesuffix(field).rstrip("/. ")
    only = plan.objects_touched[0] if len(plan.objects_touched) == 1 else ""
    planned, current = item.get("planned", MISSING), item.get("current", MISSING)
    shown = [changes.value(plan.operation, field, end) for end in (planned, current)]
    raw = f"{shown[0].raw} → {shown[1].raw}" if shown[0].raw and shown[1].raw else ""
    named = str(item.get("target") or stem or only)
    return Moved(rendering.name(named).text, rendering.name(field).text, shown[0], shown[1], raw)


def _field_of(plan: Plan, path: str) -> str:
    """The longest field of the plan that the path ends in; else its last step."""
    known = {str(action.get("field", "")) for action in plan.actions}
    ends = [field for field in known if field and path.endswith(field)]
    return max(ends, key=len, default=path.replace(".", "/").rsplit("/", 1)[-1])


def _verdict(dead: Plan) -> str:
    last = max(dead.decisions.all(), key=lambda d: d.pk, default=None)
    if last is None or last.verdict == Decision.Verdict.APPROVE:
        return _say(dead, _("Revision {number} was closed by a person."))
    note = f": “{rendering.prose(last.note)}”" if last.note else "."
    return f"{last.person.get_username()} {last.get_verdict_display()}{note}"


def _superseded(dead: Plan, successor: Plan) -> str:
    replan = _replan_of(successor)
    if replan and replan.cause == Replan.Cause.PERSON:
        text = _("A reviewer asked for a fresh plan while revision {number} was waiting.")
        return _say(dead, text)
    if replan and replan.cause == Replan.Cause.OPENED:
        left = phrases.time_left((dead.decide_by - replan.created_at).total_seconds())
        text = _(
            "A reviewer opened revision {number} with {left} left, so the app made a fresh plan."
        )
        return _say(dead, text, left=left)
    text = _("{agent} replaced revision {number} while it was waiting.")
    return _say(dead, text, agent=successor.agent.name)


def _again(dead: Plan, plan: Plan) -> str:
    """`Re-planned at once`, or how long it took."""
    if dead.closed_at is None:
        return _("Planned again")
    took = plan.received_at - dead.closed_at
    if took <= AT_ONCE:
        return _("Re-planned at once")
    minutes, seconds = divmod(int(took.total_seconds()), 60)
    text = f"{minutes} min" if minutes else f"{seconds} s"
    return _("Re-planned {took} later").format(took=text)


def _replan_of(plan: Plan) -> Replan | None:
    return getattr(plan, "made_by", None)


def _by_place(plan: Plan) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(str(a.get("op")), str(a.get("target")), str(a.get("field"))): a for a in plan.actions}


def _ends(action: dict[str, Any] | None) -> str:
    """Compared as JSON text would be: 1 is not true, and NFC is not NFD."""
    if action is None:
        return "absent"
    return repr((action.get("from", MISSING), action.get("to", MISSING)))


def _difference(
    plan: Plan,
    place: tuple[str, str, str],
    was: dict[str, Any] | None,
    now: dict[str, Any] | None,
) -> Difference:
    return Difference(
        object=rendering.name(place[1]),
        field=rendering.name(place[2]),
        was=_pair(plan, was),
        now=_pair(plan, now),
        twin=changes.twin(_end(was), _end(now)),
    )


def _end(action: dict[str, Any] | None) -> JsonValue | Missing:
    return action.get("to", MISSING) if action else MISSING


def _pair(plan: Plan, action: dict[str, Any] | None) -> Pair | None:
    if action is None:
        return None
    field = str(action.get("field", ""))
    ends = (action.get("from", MISSING), action.get("to", MISSING))
    before, after = (changes.value(plan.operation, field, end) for end in ends)
    return Pair(before, after)


def _elsewhere(old: Plan, new: Plan) -> list[str]:
    """Differences outside the list of changes, in words."""
    found = []
    if bytes(old.inputs) != bytes(new.inputs):
        found.append(_("The agent's inputs are not the same."))
    if old.risk != new.risk:
        risks = {"now": _(new.risk), "was": _(old.risk)}
        found.append(_("The risk is now {now}, it was {was}.").format(**risks))
    if old.verified != new.verified and new.verification != Plan.Verification.WAITING:
        line = _("This revision is not verified, the earlier one was not.")
        found.append(
            _("This revision is read back, the earlier one was not.") if new.verified else line
        )
    return found

"""What has become of a plan that does not wait for people any more: who, when, what now (S-3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals import revisions
from approvals.models import Decision
from approvals.rendering import MISSING, prose, show
from approvals.revisions import Moved
from audit.templatetags.times import clock
from plans.models import Attempt, Intent, Plan, Replan
from plans.status import REPLANNED, Status

Verdict = Decision.Verdict
NOTHING_APPLIED: Final = gettext_lazy("Nothing was applied.")


@dataclass(frozen=True, slots=True)
class State:
    """What a banner is made of. `decisions` are the plan's, oldest first."""

    plan: Plan
    decisions: Sequence[Decision]
    attempts: Sequence[Attempt]
    replan: Replan | None
    successor: Plan | None
    # Every send is held by the emergency stop.
    stopped: bool = False

    def last(self, *verdicts: str) -> Decision | None:
        found = [d for d in self.decisions if d.verdict in verdicts]
        return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class Banner:
    """`tone` is a class with a word of its own in `heading`; colour alone says nothing.

    Texts are HTML where they hold a time, else plain: the template escapes what is not safe.
    """

    tone: str
    heading: str
    lines: list[str] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)


def banner(state: State) -> Banner | None:
    """None while the plan is pending: then the page itself is about the decision."""
    make = _BANNERS.get(Status(state.plan.status))
    if make is None:
        return None
    found = make(state)
    return Banner(found.tone, found.heading, [*found.lines, *_what_now(state)], found.moved)


def _say(plan: Plan, text: str, **more: object) -> str:
    """A sentence about the plan, with what its slots stand for."""
    known = {"target": plan.target.name, "agent": plan.agent.name, "at": clock(plan.closed_at)}
    return format_html(text, **(known | more))


def _what_now(state: State) -> list[str]:
    """After a death: the successor is linked by the page; without one, who makes it."""
    plan, replan = state.plan, state.replan
    if state.successor or not plan.is_terminal or plan.status == Status.COMMITTED:
        return []
    if plan.intent.status == Intent.Status.SETTLED:
        why = prose(plan.intent.closed_reason)
        return [_say(plan, _("There is nothing left to change: {why}"), why=why)]
    if plan.intent.status == Intent.Status.ABANDONED:
        return [_("The intent behind it was given up; it is not planned again.")]
    if plan.intent.status == Intent.Status.PARKED:
        return [_("Parked: it is planned again as soon as a reviewer opens it.")]
    if replan is None or replan.status not in Replan.WAITING:
        return [] if plan.status not in REPLANNED else [_("It is being planned again.")]
    if replan.mode == "agent":
        return [_say(plan, _("{agent} has been asked for a new plan."))]
    if not replan.last_error:
        return [_("It is being planned again with the same inputs.")]
    text = _("It is being planned again with the same inputs. The last try failed: {fault}.")
    return [_say(plan, text, fault=prose(replan.last_error))]


def _verifying(state: State) -> Banner:
    plan, tries = state.plan, state.plan.verify_tries
    lines = [_("It can be decided as soon as {target} has confirmed it by its plan ID.")]
    if tries:
        lines.append(_("{target} could not be read {tries} times; it is tried until it expires."))
    heading = _say(plan, _("Being read back from {target}"))
    return Banner("info", heading, [_say(plan, line, tries=tries) for line in lines])


def _approved(state: State) -> Banner:
    plan, line = state.plan, _("The commit leaves now.")
    if state.stopped:
        line = _("Sending is stopped for everything: it waits, and expires if that lasts too long.")
    elif plan.target.circuit_opened_at:
        why = prose(plan.target.circuit_reason)
        held = _("Sending to {target} is held: {why}. An operator can try again.")
        line = _say(plan, held, why=why)
    return Banner("info", _by(state, Verdict.APPROVE), [line])


def _committing(state: State) -> Banner:
    plan = state.plan
    last = state.attempts[-1] if state.attempts else None
    if last and last.outcome in (Attempt.Outcome.NOT_SENT, Attempt.Outcome.RETRY_LATER):
        unreached = last.outcome == Attempt.Outcome.NOT_SENT
        why = _("could not be reached") if unreached else _("asked to come back later")
        text = _("{target} {why}; next try at {due} with the same key.")
        if state.stopped:
            text = _("{target} {why}; sending is stopped, so it waits.")
        line = _say(plan, text, why=why, due=clock(plan.next_attempt_at))
    else:
        after = _after_approval(plan, plan.first_sent_at)
        line = _say(plan, _("Sent to {target}{after}; no answer yet."), after=after)
    return Banner("info", _by(state, Verdict.APPROVE), [line])


def _unknown(state: State) -> Banner:
    plan = state.plan
    resends = plan.target.idempotency and not state.stopped
    again = _("retrying with the same key") if resends else _("reading its state")
    lines = [
        _say(plan, _("Not confirmed yet; {again}."), again=again),
        _say(plan, _("{target} may have applied it or not. It is never sent under a second key.")),
    ]
    return Banner("warn", _("Not confirmed yet"), lines)


def _unresolved(state: State) -> Banner:
    text = _("{target} may have applied it or not. Look at {target}, then say what you found.")
    return Banner("bad", _("Nobody knows whether it was applied"), [_say(state.plan, text)])


def _committed(state: State) -> Banner:
    plan = state.plan
    after, number = _after_approval(plan, plan.closed_at), len(state.attempts)
    lines = [_say(plan, _("{target} applied it{after}."), after=after)]
    if plan.applied_out_of_band:
        lines.append(_("It had been applied before our first attempt, by somebody else."))
    if number > 1:
        text = _("{number} attempts, all with the same key, applied once.")
        lines.append(_say(plan, text, number=number))
    return Banner("good", _say(plan, _("Committed at {at}")), lines)


def _rejected(state: State) -> Banner:
    decision = state.last(Verdict.REJECT)
    if decision:
        heading = _by(state, Verdict.REJECT)
        return Banner("bad", heading, [*_note(decision), str(NOTHING_APPLIED)])
    return Banner("bad", _say(state.plan, _("Withdrawn at {at}")), [str(NOTHING_APPLIED)])


def _changes_requested(state: State) -> Banner:
    decision = state.last(Verdict.REQUEST_CHANGES)
    note = _note(decision) if decision else []
    return Banner("warn", _by(state, Verdict.REQUEST_CHANGES), [*note, str(NOTHING_APPLIED)])


def _expired(state: State) -> Banner:
    line = _("Its time was over before it was decided.")
    if state.plan.approved_at:
        line = _("Its time was over before it could be sent.")
    lines = [f"{line} {NOTHING_APPLIED}"]
    return Banner("warn", _say(state.plan, _("Expired at {at}")), lines)


def _conflicted(state: State) -> Banner:
    plan = state.plan
    moved = revisions.moved(plan)
    text = _("{target} refused it, because what it was planned from has changed. {nothing}")
    heading = _say(plan, _("The world moved: conflicted at {at}"))
    return Banner("warn", heading, [_say(plan, text, nothing=NOTHING_APPLIED)], moved)


def _stale(state: State) -> Banner:
    line = _("Something that it covers was written since it was planned.")
    heading = _say(state.plan, _("Stale since {at}"))
    return Banner("warn", heading, [f"{line} {NOTHING_APPLIED}"])


def _superseded(state: State) -> Banner:
    # The page names the successor where there is one.
    lines = [] if state.successor else [_("A newer plan has taken its place.")]
    heading = _say(state.plan, _("Superseded at {at}"))
    return Banner("info", heading, [" ".join([*lines, str(NOTHING_APPLIED)])])


def _abandoned(state: State) -> Banner:
    plan = state.plan
    why = f" ({prose(plan.intent.closed_reason).rstrip('.')})" if plan.intent.closed_reason else ""
    text = _("Nobody wants it any more{why}. {nothing}")
    lines = [_say(plan, text, why=why, nothing=NOTHING_APPLIED)]
    return Banner("info", _say(plan, _("Abandoned at {at}")), lines)


def _mismatched(state: State) -> Banner:
    plan = state.plan
    lines = [_say(plan, _("What {agent} submitted is not what {target} holds."))]
    lines += [*map(_mismatch, plan.mismatches), str(NOTHING_APPLIED)]
    return Banner("bad", _("The agent's plan is not the target's plan"), lines)


def _failed(state: State) -> Banner:
    plan, problem = state.plan, state.plan.problem or {}
    told = [prose(str(problem[name])) for name in ("status", "code", "detail") if problem.get(name)]
    text = _("{target} refused it: {told}.") if told else _("{target} did not apply it.")
    lines = [_say(plan, text, told=" · ".join(told).rstrip(".")), str(NOTHING_APPLIED)]
    return Banner("bad", _say(plan, _("Failed at {at}")), lines)


def _mismatch(item: Any) -> str:
    if not isinstance(item, dict):
        return prose(str(item))
    sent, held = (show(item.get(name, MISSING)).text for name in ("submitted", "read_back"))
    text, pointer = _("{pointer}: submitted {sent}, read back {held}"), item.get("pointer")
    return text.format(pointer=prose(str(pointer)), sent=sent, held=held)


def _by(state: State, verdict: Verdict) -> str:
    """`Approved by ada at 09:36:40`."""
    names = [d.person.get_username() for d in state.decisions if d.verdict == verdict]
    decision = state.last(verdict)
    if decision is None:
        return str(_DONE[verdict])
    who, at = ", ".join(dict.fromkeys(names)), clock(decision.decided_at)
    return format_html(str(_DONE_BY[verdict]), who=who, at=at)


def _note(decision: Decision) -> list[str]:
    return [f"“{prose(decision.note)}”"] if decision.note else []


def _after_approval(plan: Plan, instant: datetime | None) -> str:
    if plan.approved_at is None or instant is None:
        return ""
    seconds = max(0.0, (instant - plan.approved_at).total_seconds())
    took = f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    return _(" {took} after approval").format(took=took)


_DONE: Final = {
    Verdict.APPROVE: gettext_lazy("Approved"),
    Verdict.REJECT: gettext_lazy("Rejected"),
    Verdict.REQUEST_CHANGES: gettext_lazy("Changes requested"),
}
_DONE_BY: Final = {
    Verdict.APPROVE: gettext_lazy("Approved by {who} at {at}"),
    Verdict.REJECT: gettext_lazy("Rejected by {who} at {at}"),
    Verdict.REQUEST_CHANGES: gettext_lazy("Changes requested by {who} at {at}"),
}


_BANNERS: Final[dict[Status, Callable[[State], Banner]]] = {
    Status.VERIFYING: _verifying,
    Status.APPROVED: _approved,
    Status.COMMITTING: _committing,
    Status.UNKNOWN: _unknown,
    Status.UNRESOLVED: _unresolved,
    Status.COMMITTED: _committed,
    Status.REJECTED: _rejected,
    Status.CHANGES_REQUESTED: _changes_requested,
    Status.EXPIRED: _expired,
    Status.CONFLICTED: _conflicted,
    Status.STALE: _stale,
    Status.SUPERSEDED: _superseded,
    Status.ABANDONED: _abandoned,
    Status.MISMATCHED: _mismatched,
    Status.FAILED: _failed,
}

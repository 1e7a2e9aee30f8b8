"""What has become of a plan that does not wait for people any more: who, when, what now (S-3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from approvals import revisions
from approvals.models import Decision
from approvals.rendering import MISSING, prose, show
from approvals.revisions import Moved, clock_time
from plans.models import Attempt, Intent, Plan, Replan
from plans.status import REPLANNED, Status

NOTHING_APPLIED: Final = "Nothing was applied."


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
    """`tone` is a class with a word of its own in `heading`; colour alone says nothing."""

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


def _what_now(state: State) -> list[str]:
    """After a death: the successor is linked by the page; without one, who makes it."""
    plan, replan = state.plan, state.replan
    if state.successor or not plan.is_terminal or plan.status == Status.COMMITTED:
        return []
    if plan.intent.status == Intent.Status.SETTLED:
        return [f"There is nothing left to change: {prose(plan.intent.closed_reason)}"]
    if plan.intent.status == Intent.Status.ABANDONED:
        return ["The intent behind it was given up; it is not planned again."]
    if plan.intent.status == Intent.Status.PARKED:
        return ["Parked: it is planned again as soon as a reviewer opens it."]
    if replan is None or replan.status not in Replan.WAITING:
        return [] if plan.status not in REPLANNED else ["It is being planned again."]
    if replan.mode == "agent":
        return [f"{plan.agent.name} has been asked for a new plan."]
    failed = f" The last try failed: {prose(replan.last_error)}." if replan.last_error else ""
    return [f"It is being planned again with the same inputs.{failed}"]


def _verifying(state: State) -> Banner:
    target, tries = state.plan.target.name, state.plan.verify_tries
    lines = [f"It can be decided as soon as {target} has confirmed it by its plan ID."]
    if tries:
        lines.append(f"{target} could not be read {tries} times; it is tried until it expires.")
    return Banner("info", f"Being read back from {target}", lines)


def _approved(state: State) -> Banner:
    plan, line = state.plan, "The commit leaves now."
    if state.stopped:
        line = "Sending is stopped for everything: it waits, and expires if that lasts too long."
    elif plan.target.circuit_opened_at:
        why = prose(plan.target.circuit_reason)
        line = f"Sending to {plan.target.name} is held: {why}. An operator can try again."
    return Banner("info", _by(state, "Approved", "approve"), [line])


def _committing(state: State) -> Banner:
    plan = state.plan
    last = state.attempts[-1] if state.attempts else None
    if last and last.outcome in (Attempt.Outcome.NOT_SENT, Attempt.Outcome.RETRY_LATER):
        why = "could not be reached" if last.outcome == "not_sent" else "asked to come back later"
        due = clock_time(plan.next_attempt_at)
        line = f"{plan.target.name} {why}; next try at {due} with the same key."
        if state.stopped:
            line = f"{plan.target.name} {why}; sending is stopped, so it waits."
    else:
        line = (
            f"Sent to {plan.target.name}{_after_approval(plan, plan.first_sent_at)}; no answer yet."
        )
    return Banner("info", _by(state, "Approved", "approve"), [line])


def _unknown(state: State) -> Banner:
    plan = state.plan
    resends = plan.target.idempotency and not state.stopped
    again = "retrying with the same key" if resends else "reading its state"
    lines = [
        f"Not confirmed yet; {again}.",
        f"{plan.target.name} may have applied it or not. It is never sent under a second key.",
    ]
    return Banner("warn", "Not confirmed yet", lines)


def _unresolved(state: State) -> Banner:
    target = state.plan.target.name
    lines = [f"{target} may have applied it or not. Look at {target}, then say what you found."]
    return Banner("bad", "Nobody knows whether it was applied", lines)


def _committed(state: State) -> Banner:
    plan = state.plan
    lines = [f"{plan.target.name} applied it{_after_approval(plan, plan.closed_at)}."]
    if plan.applied_out_of_band:
        lines.append("It had been applied before our first attempt, by somebody else.")
    if len(state.attempts) > 1:
        lines.append(f"{len(state.attempts)} attempts, all with the same key, applied once.")
    return Banner("good", f"Committed at {clock_time(plan.closed_at)}", lines)


def _rejected(state: State) -> Banner:
    decision = state.last(Decision.Verdict.REJECT)
    if decision:
        heading = _by(state, "Rejected", Decision.Verdict.REJECT)
        return Banner("bad", heading, [*_note(decision), NOTHING_APPLIED])
    return Banner("bad", f"Withdrawn at {clock_time(state.plan.closed_at)}", [NOTHING_APPLIED])


def _changes_requested(state: State) -> Banner:
    decision = state.last(Decision.Verdict.REQUEST_CHANGES)
    heading = _by(state, "Changes requested", Decision.Verdict.REQUEST_CHANGES)
    return Banner("warn", heading, [*(_note(decision) if decision else []), NOTHING_APPLIED])


def _expired(state: State) -> Banner:
    what = "could be sent" if state.plan.approved_at else "was decided"
    lines = [f"Its time was over before it {what}. {NOTHING_APPLIED}"]
    return Banner("warn", f"Expired at {clock_time(state.plan.closed_at)}", lines)


def _conflicted(state: State) -> Banner:
    plan = state.plan
    moved = revisions.moved(plan)
    line = f"{plan.target.name} refused it, because what it was planned from has changed. "
    heading = f"The world moved: conflicted at {clock_time(plan.closed_at)}"
    return Banner("warn", heading, [line + NOTHING_APPLIED], moved)


def _stale(state: State) -> Banner:
    line = f"Something that it covers was written since it was planned. {NOTHING_APPLIED}"
    return Banner("warn", f"Stale since {clock_time(state.plan.closed_at)}", [line])


def _superseded(state: State) -> Banner:
    line = f"A newer plan has taken its place. {NOTHING_APPLIED}"
    return Banner("info", f"Superseded at {clock_time(state.plan.closed_at)}", [line])


def _abandoned(state: State) -> Banner:
    plan = state.plan
    why = f" ({prose(plan.intent.closed_reason)})" if plan.intent.closed_reason else ""
    heading = f"Abandoned at {clock_time(plan.closed_at)}"
    return Banner("info", heading, [f"Nobody wants it any more{why}. {NOTHING_APPLIED}"])


def _mismatched(state: State) -> Banner:
    plan = state.plan
    lines = [f"What {plan.agent.name} submitted is not what {plan.target.name} holds."]
    lines += [_mismatch(item) for item in plan.mismatches]
    return Banner("bad", "The agent's plan is not the target's plan", [*lines, NOTHING_APPLIED])


def _failed(state: State) -> Banner:
    plan, problem = state.plan, state.plan.problem or {}
    told = [prose(str(problem[name])) for name in ("status", "code", "detail") if problem.get(name)]
    words = f"{plan.target.name} refused it: {' · '.join(told)}." if told else ""
    lines = [words or f"{plan.target.name} did not apply it.", NOTHING_APPLIED]
    return Banner("bad", f"Failed at {clock_time(plan.closed_at)}", lines)


def _mismatch(item: Any) -> str:
    if not isinstance(item, dict):
        return prose(str(item))
    sent, held = (show(item.get(name, MISSING)).text for name in ("submitted", "read_back"))
    return f"{prose(str(item.get('pointer')))}: submitted {sent}, read back {held}"


def _by(state: State, what: str, verdict: str) -> str:
    """`Approved by ada at 09:36:40`."""
    names = [d.person.get_username() for d in state.decisions if d.verdict == verdict]
    decision = state.last(verdict)
    if decision is None:
        return what
    return f"{what} by {', '.join(dict.fromkeys(names))} at {clock_time(decision.decided_at)}"


def _note(decision: Decision) -> list[str]:
    return [f"“{prose(decision.note)}”"] if decision.note else []


def _after_approval(plan: Plan, instant: datetime | None) -> str:
    if plan.approved_at is None or instant is None:
        return ""
    seconds = max(0.0, (instant - plan.approved_at).total_seconds())
    took = f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    return f" {took} after approval"


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

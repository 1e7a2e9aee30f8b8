"""The way through Countersign: a person decides, the server commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from countersign_agent.api import Reason
from countersign_agent.calling import LONGEST_WAIT
from countersign_agent.desk import Believed
from countersign_agent.direct import DirectWay, settled_or_raise
from countersign_agent.documents import freeze_inputs
from countersign_agent.errors import DryRunRefused, NotFound, OutcomeUnknown
from countersign_agent.flows import Flow, alone
from countersign_agent.handing_over import Review
from countersign_agent.opening import Opening
from countersign_agent.planning import NOTHING_TO_CHANGE, dry_run
from countersign_agent.results import Plan
from countersign_agent.secret import Secret
from countersign_agent.state import HeldIntent, HeldPlan, TaskState
from countersign_agent.views import Outcome, direct_outcome, reviewed_outcome, told

type Evidence = Sequence[Mapping[str, str]]


class ReviewedWay(DirectWay):
    """Dry run here (or at the server), review and commit there."""

    def propose(
        self,
        target: str,
        operation: str,
        inputs: Mapping[str, Any],
        *,
        reason: str = "",
        summary: str = "",
        evidence: Evidence = (),
        again: bool = False,
    ) -> Flow[Outcome]:
        """Make a dry run and hand its plan over for review; then `wait` for what comes of it.

        The same wish again gives what there is, also when it was committed or rejected; `again` is
        for the very same write once more, on purpose. For a target that the guard was not given
        the server makes the dry run. Raises OutcomeUnknown, DryRunRefused, TargetAway, `Refused`.
        """
        wish = HeldIntent(target, operation, freeze_inputs(inputs), summary, reason)
        wish.evidence = [dict(each) for each in evidence]
        return (yield from alone(self.lock, self._propose(wish, again=again)))

    def submit(
        self,
        plan_id: str,
        *,
        reason: str = "",
        summary: str = "",
        evidence: Evidence = (),
        inputs: Mapping[str, Any] | None = None,
        plan_token: Secret | str | None = None,
        input_fingerprint: str | None = None,
    ) -> Flow[Outcome]:
        """Hand a plan over that `plan` made. What is believed about it is compared, as in commit.

        If it expired or was written to, a fresh one is handed over in its place.
        """
        wish = HeldIntent("", "", b"", summary, reason, [dict(each) for each in evidence])
        believed = Believed(inputs, plan_token, input_fingerprint)
        return (yield from alone(self.lock, self._submit(plan_id, wish, believed)))

    def revise(
        self,
        plan_id: str,
        inputs: Mapping[str, Any],
        *,
        reason: str = "",
        summary: str = "",
        evidence: Evidence = (),
    ) -> Flow[Outcome]:
        """The same intent with other inputs, as after "request changes": a new plan for review."""
        wish = HeldIntent("", "", freeze_inputs(inputs), summary, reason)
        wish.evidence = [dict(each) for each in evidence]
        return (yield from alone(self.lock, self._revise(plan_id, wish)))

    def status(self, plan_id: str) -> Flow[Outcome]:
        """What is true of the plan now, or of the one that took its place."""
        return (yield from alone(self.lock, self._look(plan_id, 0.0)))

    def wait(self, plan_id: str, seconds: float = LONGEST_WAIT) -> Flow[Outcome]:
        """Wait for a decision and its outcome, at most `seconds`; then ask again.

        Plans that expired, conflicted or became stale are planned again on the way.
        """
        return (yield from self._look(plan_id, seconds))

    def withdraw(
        self, plan_id: str, reason: Reason = "intent_changed", note: str = ""
    ) -> Flow[Outcome]:
        """Nothing of it is wanted any more: its token is dropped, its intent abandoned."""
        return (yield from alone(self.lock, self._withdraw(plan_id, reason, note)))

    # ── How ─────────────────────────────────────────────────────────────────────────────────
    def _propose(self, wish: HeldIntent, *, again: bool = False) -> Flow[Outcome]:
        state = yield from self.working()
        self.around.server()
        yield from self.report(state)
        yield from self.looked_over(state, wish.target)
        intent = self.standing(state, wish, again=again)
        if intent is None and wish.target not in self.around.targets:
            self.refuse_doubt(state, wish.target, None)
            state.intents.append(intent := wish)
        if intent is not None and intent.current is None:
            return (yield from Opening(self.around, state, intent).open())
        if intent is not None and intent.current is not None:
            _say(intent, wish)
            return (yield from self._handed(state, intent, intent.current))
        try:
            plan = yield from self.drawn_up(state, wish)
        except DryRunRefused as refused:
            return settled_or_raise(refused)
        return (yield from self._handed(state, wish, plan))

    def _handed(self, state: TaskState, intent: HeldIntent, plan: HeldPlan) -> Flow[Outcome]:
        """What the server says of it, once it has it."""
        if plan.server is None and plan.in_doubt:
            raise OutcomeUnknown(plan.plan_id)
        if plan.server is None and plan.answers_wish:
            return direct_outcome(intent, plan)
        try:
            plan = yield from Review(self.around, state, intent).look(plan)
        except DryRunRefused as refused:
            return settled_or_raise(refused)
        return reviewed_outcome(intent, plan)

    def _submit(self, plan_id: str, words: HeldIntent, believed: Believed) -> Flow[Outcome]:
        state = yield from self.working()
        intent, plan = state.find(plan_id)
        believed.check(intent, plan)
        intent, plan = self.latest(state, plan_id)
        if plan.ends_intent:
            return told(intent, plan)
        self.refuse_doubt(state, intent.target, plan.objects(), but=plan)
        yield from self.report(state)
        _say(intent, words)
        return (yield from self._handed(state, intent, plan))

    def _revise(self, plan_id: str, wish: HeldIntent) -> Flow[Outcome]:
        state = yield from self.working()
        intent, plan = self.latest(state, plan_id)
        wish.target, wish.operation = intent.target, intent.operation
        if plan.server is not None:
            plan = yield from Review(self.around, state, intent).look(plan)
        if plan.in_doubt:
            raise OutcomeUnknown(plan.plan_id)
        if wish.inputs == intent.inputs or intent.closed:
            return (yield from self._propose(wish))
        if plan.server is None or intent.target not in self.around.targets:
            yield from self._withdraw(plan.plan_id, "intent_changed", "")
            reviewed = self.around.api is not None
            return (yield from self._propose(wish) if reviewed else self._plan(wish, again=False))
        return (yield from self._revised(state, intent, wish, plan.server))

    def _revised(
        self, state: TaskState, intent: HeldIntent, wish: HeldIntent, before: Plan
    ) -> Flow[Outcome]:
        """The next revision: as the answer to a re-plan that waits for it, else in its place."""
        fresh = yield from dry_run(self.around, state, wish)
        self.refuse_doubt(state, intent.target, fresh.objects())
        replan = before.replan
        if replan is not None and replan.mode == "agent":
            claim = yield from self.around.server().claim_replan(replan.id)
            fresh.replan_id = claim.id if claim else None
        if fresh.replan_id is None:
            fresh.replaces = before.plan_id
        intent.inputs = wish.inputs
        _say(intent, wish)
        intent.plans.append(fresh)
        return (yield from self._handed(state, intent, fresh))

    def _look(self, plan_id: str, seconds: float) -> Flow[Outcome]:
        state = yield from self.working()
        intent, plan = state.find(plan_id)
        plan = intent.current or plan
        if plan.server is None and plan.status != "submitting":
            return direct_outcome(intent, plan)
        yield from self.report(state)
        review = Review(self.around, state, intent, self.lock)
        try:
            plan = yield from review.follow(plan, seconds) if seconds else review.look(plan)
        except DryRunRefused as refused:
            known = told(intent, intent.current or plan)
            if refused.problem.code == NOTHING_TO_CHANGE:
                known = replace(known, status="settled", next_action="done")
            return replace(known, reason=refused.problem.detail)
        return reviewed_outcome(intent, plan)

    def _withdraw(self, plan_id: str, reason: Reason, note: str) -> Flow[Outcome]:
        state = yield from self.working()
        intent, plan = state.find(plan_id)
        plan = intent.current or plan
        if plan.server is None and plan.in_doubt:
            raise OutcomeUnknown(plan.plan_id)
        if plan.server is None and plan.over:
            return direct_outcome(intent, plan)
        plan.drop_token()
        if plan.server is None and plan.status == "planned":
            plan.status = "abandoned"
        yield from self.around.keep(state)
        if plan.status == "abandoned":
            return direct_outcome(intent, plan)
        return (yield from self._abandoned(state, intent, plan, reason, note))

    def _abandoned(
        self, state: TaskState, intent: HeldIntent, plan: HeldPlan, reason: Reason, note: str
    ) -> Flow[Outcome]:
        try:
            told = yield from self.around.server().abandon_plan(
                intent.target, plan.plan_id, reason, note
            )
        except NotFound:
            # It was being handed over, and never arrived.
            plan.status = "abandoned"
            yield from self.around.keep(state)
            return direct_outcome(intent, plan)
        plan = yield from Review(self.around, state, intent).adopt(plan, told.plan)
        return reviewed_outcome(intent, plan)


def _say(intent: HeldIntent, words: HeldIntent) -> None:
    """Take over the agent's words where there are new ones."""
    intent.summary = words.summary or intent.summary
    intent.reason = words.reason or intent.reason
    intent.evidence = words.evidence or intent.evidence

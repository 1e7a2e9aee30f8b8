"""The direct way: no person decides, and the same rules hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from countersign_agent.committing import Commit, unusable
from countersign_agent.desk import Believed, Desk
from countersign_agent.documents import freeze_inputs
from countersign_agent.errors import DryRunRefused, OutcomeUnknown, PlanSubmitted, TargetFault
from countersign_agent.flows import Flow, alone
from countersign_agent.handing_over import Review
from countersign_agent.planning import NOTHING_TO_CHANGE, dry_run
from countersign_agent.secret import Secret
from countersign_agent.state import HeldIntent, HeldPlan, PlanStatus, TaskState
from countersign_agent.views import Outcome, PlanView, direct_outcome, plan_view, told


class DirectWay(Desk):
    """Dry run here, commit here."""

    def plan(
        self, target: str, operation: str, inputs: Mapping[str, Any], *, again: bool = False
    ) -> Flow[Outcome]:
        """Make a dry run: it changes nothing, and its plan can be committed or submitted.

        The same wish again gives what there is: the plan, a fresh one if that cannot be used, or
        its result; `again` is for the very same write once more, on purpose.
        Raises OutcomeUnknown, PlanSubmitted, DryRunRefused, TargetAway.
        """
        wish = HeldIntent(target, operation, freeze_inputs(inputs))
        return (yield from alone(self.lock, self._plan(wish, again=again)))

    def commit(
        self,
        plan_id: str,
        *,
        inputs: Mapping[str, Any] | None = None,
        plan_token: Secret | str | None = None,
        input_fingerprint: str | None = None,
    ) -> Flow[Outcome]:
        """Commit a plan at its target, once; again for a plan whose outcome is not known.

        A plan that expired or was written to is planned again and never sent: the outcome has the
        `successor`. What is given beside the ID is only compared with the state, never sent.
        """
        believed = Believed(inputs, plan_token, input_fingerprint)
        return (yield from alone(self.lock, self._commit(plan_id, believed)))

    # ── Planning ────────────────────────────────────────────────────────────────────────────
    def _plan(self, wish: HeldIntent, *, again: bool) -> Flow[Outcome]:
        state = yield from self.working()
        yield from self.looked_over(state, wish.target)
        known = self.standing(state, wish, again=again)
        held = known.current if known else None
        if known is not None and held is not None:
            if held.in_doubt:
                raise OutcomeUnknown(held.plan_id)
            if held.answers_wish:
                return told(known, held)
            if held.server is not None or held.status == "submitting":
                raise PlanSubmitted(f"{held.plan_id} was handed over for review.")
            if held.status == "planned" and not unusable(self.around, known, held):
                return direct_outcome(known, held)
        try:
            fresh = yield from self.drawn_up(state, known or wish)
        except DryRunRefused as refused:
            return settled_or_raise(refused)
        return direct_outcome(known or wish, fresh)

    def drawn_up(self, state: TaskState, intent: HeldIntent) -> Flow[HeldPlan]:
        """A fresh plan as the latest of its intent, stored; the one before it is dropped.

        OutcomeUnknown when it is about something whose outcome is not known.
        """
        fresh = yield from dry_run(self.around, state, intent)
        self.refuse_doubt(state, intent.target, fresh.objects())
        old = intent.current
        if old is not None and not old.over:
            old.status = self._why_dropped(intent, old)
        if old is not None:
            old.drop_token()
        intent.plans.append(fresh)
        if intent not in state.intents:
            state.intents.append(intent)
        yield from self.around.keep(state)
        return fresh

    @staticmethod
    def standing(state: TaskState, wish: HeldIntent, *, again: bool) -> HeldIntent | None:
        """The intent that answers this wish; with `again` only one that is not over yet."""
        known = state.same(wish.target, wish.operation, wish.inputs)
        return None if again and known is not None and known.closed else known

    def looked_over(self, state: TaskState, target: str) -> Flow[None]:
        """Hear from the server what became of the plans at this target that are not over."""
        for intent, plan in state.current():
            if intent.target == target and plan.server is not None and not plan.over:
                yield from Review(self.around, state, intent).look(plan)

    def _why_dropped(self, intent: HeldIntent, old: HeldPlan) -> PlanStatus:
        why = unusable(self.around, intent, old)
        return "stale" if why == "stale" else "expired" if why else "superseded"

    # ── Committing ──────────────────────────────────────────────────────────────────────────
    def _commit(self, plan_id: str, believed: Believed) -> Flow[Outcome]:
        state = yield from self.working()
        intent, plan = state.find(plan_id)
        believed.check(intent, plan)
        intent, plan = self.latest(state, plan_id)
        if plan.server is not None or plan.status == "submitting":
            raise PlanSubmitted(f"{plan_id} was handed over for review.")
        if plan.ends_intent:
            return direct_outcome(intent, plan)
        if not plan.in_doubt:
            self.refuse_doubt(state, intent.target, plan.objects())
            if plan.over or unusable(self.around, intent, plan):
                return (yield from self._replaced(state, intent, plan))
        commit = Commit(self.around, state, intent, plan)
        verdict = yield from commit.carry_out(self.around.patience.commit)
        if plan.status == "committed":
            yield from self._applied(intent, plan)
        if plan.status in ("conflicted", "expired") or self._lapsed(intent, plan):
            return (yield from self._replaced(state, intent, plan))
        return direct_outcome(intent, plan, verdict is not None and verdict.replayed)

    def _lapsed(self, intent: HeldIntent, plan: HeldPlan) -> bool:
        """It could not be sent until it was too late to send it."""
        return plan.status == "planned" and bool(unusable(self.around, intent, plan))

    def _applied(self, intent: HeldIntent, plan: HeldPlan) -> Flow[None]:
        """A commit is a write like any other: what else is planned on its objects is dirty now."""
        yield from self.written(sorted(plan.objects() or {"*"}), intent.operation)

    def _replaced(self, state: TaskState, intent: HeldIntent, dead: HeldPlan) -> Flow[Outcome]:
        """The outcome of a plan that is never sent, with a fresh one in its place if there is."""
        if not dead.over:
            dead.status = self._why_dropped(intent, dead)
        dead.drop_token()
        yield from self.around.keep(state)
        try:
            fresh = yield from self.drawn_up(state, intent)
        except DryRunRefused as refused:
            settled = refused.problem.code == NOTHING_TO_CHANGE
            return self._without(intent, dead, str(refused), settled=settled)
        except TargetFault as fault:
            return self._without(intent, dead, str(fault), settled=False)
        return _with(intent, dead, plan_view(intent, fresh))

    def _without(
        self, intent: HeldIntent, dead: HeldPlan, reason: str, *, settled: bool
    ) -> Outcome:
        status = "settled" if settled else dead.status
        return Outcome(
            status=status,
            next_action="done" if settled else "replan",
            plan=plan_view(intent, dead),
            changed=dead.changed,
            reason=reason,
        )


def settled_or_raise(refused: DryRunRefused) -> Outcome:
    """A wish that is true already is no error."""
    if refused.problem.code != NOTHING_TO_CHANGE:
        raise refused
    return Outcome("settled", "done", reason=refused.problem.detail)


def _with(intent: HeldIntent, dead: HeldPlan, successor: PlanView) -> Outcome:
    return Outcome(
        status=dead.status,
        next_action="commit",
        plan=plan_view(intent, dead),
        changed=dead.changed,
        successor=successor,
        reason=dead.reason,
    )

"""The way through Countersign: hand a plan over, follow it, plan again where the server asks us to.

Once the server has a plan it commits it with its own copy of the token, so ours is dropped.
"""

from __future__ import annotations

from typing import Final

from countersign_agent.calling import LONGEST_WAIT
from countersign_agent.errors import (
    DryRunRefused,
    FingerprintDisagreement,
    NotFound,
    PlanAlreadySubmitted,
    PlanOver,
    PlanUnusable,
    TargetFault,
)
from countersign_agent.flows import Flow, Lock, alone
from countersign_agent.planning import NOTHING_TO_CHANGE, dry_run
from countersign_agent.results import Plan
from countersign_agent.state import ANY_OBJECT, HeldIntent, HeldPlan, TaskState
from countersign_agent.surroundings import Surroundings

_FRESH_TRIES: Final = 3
_TRUE_ALREADY: Final = "The target has nothing to change: what was wanted is true already."
_MOVING: Final = frozenset({"wait", "replanning"})


class Review:
    """One intent's way through Countersign."""

    def __init__(
        self,
        around: Surroundings,
        state: TaskState,
        intent: HeldIntent,
        lock: Lock | None = None,
    ) -> None:
        """`lock`: what `follow` takes for each of its steps; it holds none while it waits."""
        self.around, self.state, self.intent, self.lock = around, state, intent, lock
        self.api = around.server()

    # ── Handing over ────────────────────────────────────────────────────────────────────────
    def submit(self, plan: HeldPlan) -> Flow[HeldPlan]:
        """Give a plan to the server; the one that it took, which is a fresh one if it had to be.

        A submission that was not answered stays `submitting`, and the very same is sent again.
        """
        if plan.status == "submitting" and (known := (yield from self._arrived(plan))):
            return (yield from self.adopt(plan, known))
        for _ in range(_FRESH_TRIES):
            if plan.over or plan.dirty or self._too_late(plan):
                plan = yield from self.fresh(plan)
            plan.status = "submitting"
            yield from self.around.keep(self.state)
            try:
                told = yield from self._post(plan)
            except (PlanUnusable, PlanAlreadySubmitted):
                plan = yield from self.fresh(plan)
                continue
            plan.status = "submitted"
            return (yield from self.adopt(plan, told))
        raise TargetFault(f"{self.intent.target} gave no plan that can still be reviewed.")

    def _arrived(self, plan: HeldPlan) -> Flow[Plan | None]:
        """A submission that was not answered: what the server has of it, if anything."""
        try:
            return (yield from self.api.read_plan(self.intent.target, plan.plan_id))
        except NotFound:
            return None

    def _post(self, plan: HeldPlan) -> Flow[Plan]:
        intent = self.intent
        if plan.response is None:
            raise PlanOver(f"The token of {plan.plan_id} is gone.")
        return (
            yield from self.api.submit_plan(
                target=intent.target,
                operation=intent.operation,
                task_id=self.state.task_id,
                inputs=intent.inputs,
                plan=plan.response,
                summary=intent.summary,
                reason=intent.reason,
                evidence=intent.evidence,
                replaces=plan.replaces,
                replan_id=plan.replan_id,
                idempotency_key=plan.key,
            )
        )

    def _too_late(self, plan: HeldPlan) -> bool:
        return self.around.clock() >= plan.expires_at

    def fresh(self, dead: HeldPlan) -> Flow[HeldPlan]:
        """A new plan in the place of one that must not be used; the old one's token is dropped."""
        plan = yield from dry_run(self.around, self.state, self.intent)
        if not dead.over:
            dead.status = "stale" if dead.dirty else "expired"
        dead.drop_token()
        plan.replaces, plan.replan_id = dead.replaces, dead.replan_id
        self.intent.plans.append(plan)
        yield from self.around.keep(self.state)
        return plan

    # ── Following ───────────────────────────────────────────────────────────────────────────
    def adopt(self, plan: HeldPlan, told: Plan) -> Flow[HeldPlan]:
        """Take over what the server says, follow it to the plan that replaced it, and keep that.

        FingerprintDisagreement when the server's fingerprint is not the target's.
        """
        while True:
            if told.input_fingerprint != plan.fingerprint:
                raise FingerprintDisagreement(
                    f"The server has another fingerprint for {plan.plan_id} than the target gave.",
                    next_action="investigate",
                )
            plan.server, plan.status = told, "submitted"
            if told.status == "committed":
                self.state.mark_written(plan.objects() or frozenset({ANY_OBJECT}), "a commit")
            plan.drop_token()
            self.intent.intent_id = told.intent_id
            if told.replaced_by is None:
                yield from self.around.keep(self.state)
                return plan
            told = yield from self.api.read_plan(told.target, told.replaced_by)
            plan = self.take(told)

    def take(self, told: Plan) -> HeldPlan:
        """A plan that the server made, or has already; its token never comes here."""
        for plan in self.intent.plans:
            if plan.plan_id == told.plan_id:
                return plan
        plan = HeldPlan(
            plan_id=told.plan_id,
            fingerprint=told.input_fingerprint,
            received_at=told.server_time,
            expires_at=told.expires_at,
            actions=told.actions,
            # The same inputs are about the same objects.
            covers=self.intent.plans[-1].covers if self.intent.plans else None,
            key=told.commit.idempotency_key,
            server=told,
            status="submitted",
        )
        self.intent.plans.append(plan)
        return plan

    def look(self, plan: HeldPlan) -> Flow[HeldPlan]:
        """What the server says of it now, without waiting."""
        if plan.server is None:
            return (yield from self.submit(plan))
        told = yield from self.api.read_plan(self.intent.target, plan.plan_id)
        return (yield from self.adopt(plan, told))

    def follow(self, plan: HeldPlan, seconds: float) -> Flow[HeldPlan]:
        """Wait until there is something to do or to tell; plan again where that is ours to do."""
        ends, tried = self.around.monotonic() + seconds, False
        plan = yield from self._alone(self.look(plan))
        while (told := plan.server) is not None:
            left, ours = ends - self.around.monotonic(), self._ours_to_plan(told)
            if not (ours or told.next_action in _MOVING) or (left < 1 and (tried or not ours)):
                break
            if ours:
                if tried:
                    yield from self.around.wait(1.0)
                plan, tried = (yield from self._alone(self.plan_again(plan, told))), True
                continue
            told = yield from self.api.wait_for_plan(told, min(left, LONGEST_WAIT))
            plan = yield from self._alone(self.adopt(plan, told))
        return plan

    def _alone[T](self, flow: Flow[T]) -> Flow[T]:
        return alone(self.lock, flow) if self.lock else flow

    # ── Planning again ──────────────────────────────────────────────────────────────────────
    def _ours_to_plan(self, told: Plan) -> bool:
        """An agent's re-plan with the same inputs; requested changes need a new wish."""
        replan = told.replan
        return (
            told.next_action == "replan"
            and replan is not None
            and replan.mode == "agent"
            and replan.cause != "changes_requested"
            and self.intent.target in self.around.targets
        )

    def plan_again(self, dead: HeldPlan, told: Plan) -> Flow[HeldPlan]:
        """Claim the re-plan, repeat the dry run, hand the new plan over in the same intent."""
        if self.intent.current is not None and self.intent.current is not dead:
            return self.intent.current
        claim = yield from self.api.claim_replan(told.replan.id if told.replan else None)
        if claim is None:
            # Parked until somebody looks, or done by another process of this agent.
            return (yield from self.look(dead))
        try:
            plan = yield from dry_run(self.around, self.state, self.intent)
        except DryRunRefused as refused:
            if refused.problem.code == NOTHING_TO_CHANGE:
                # Only the server's own dry run can settle an intent; ours can end it.
                ended = self.api.abandon_plan(told.target, told.plan_id, "other", _TRUE_ALREADY)
                yield from self.adopt(dead, (yield from ended).plan)
            else:
                yield from self.api.fail_replan(claim.id, f"The target refused: {refused}")
            raise
        plan.replan_id = claim.id
        self.intent.plans.append(plan)
        return (yield from self.submit(plan))

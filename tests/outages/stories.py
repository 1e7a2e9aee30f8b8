"""What every outage is judged by: the target's ledger, and the hands that plans are left in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from tests.faults.scripted_target import Received, Reply, ScriptedTarget, apply
from tests.journeys.people import Plan
from tests.outages.stage import Stage


def sent(target: ScriptedTarget, plan: Plan) -> list[str]:
    """The attempts that reached the target, by the number that each one carried."""
    return [c.headers["Attempt"] for c in target.commits if c.headers["Plan-Id"] == plan["plan_id"]]


def applied_once(target: ScriptedTarget, plan: Plan) -> bool:
    """By the target's own ledger; and no attempt had another key or another body."""
    mine = [c for c in target.commits if c.headers["Plan-Id"] == plan["plan_id"]]
    once = target.applications.count(plan["plan_id"]) == 1
    keys, bodies = {c.key for c in mine}, {c.body for c in mine}
    return once and keys == {plan["commit"]["idempotency_key"]} and len(bodies) == 1


class Withheld:
    """A commit is applied and answered; its plan's row is locked before the answer leaves.

    Whoever reads the answer holds it in the hand until `release()`, or until the server is gone.
    """

    def __init__(self, stage: Stage, plan: Plan) -> None:
        self._row = "SELECT FROM plans_plan WHERE plan_id = %s FOR UPDATE", plan["plan_id"]
        self._stage, self._held = stage, ExitStack()

    @property
    def step(self) -> Callable[[ScriptedTarget, Received, str], Reply]:
        """What the target is to play for this plan's commit."""

        def answers(target: ScriptedTarget, request: Received, plan_id: str) -> Reply:
            self._held.enter_context(self._stage.locked(*self._row))
            return apply(target, request, plan_id)

        return answers

    def release(self) -> None:
        self._held.close()

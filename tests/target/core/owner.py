"""An owner of a target: what it plans and does is said by the test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from countersign_target import Action, Operation, Plan, State
from tests.target.crib import Crib

UPDATE = Action("update", "thing/1", "size", 1, 2)


@dataclass
class Owner:
    """Does as it is told: what `plan` covers and returns or raises, and what `apply` does."""

    covers: dict[str, dict[str, Any]] = field(default_factory=dict)
    actions: Any = field(default_factory=lambda: [UPDATE])
    refuses: Exception | None = None
    fails: BaseException | None = None
    result: Any = field(default_factory=lambda: {"done": True})
    plans: list[Plan] = field(default_factory=list)

    def plan(self, inputs: dict[str, Any], state: State) -> Any:
        for target, values in self.covers.items():
            state.cover(target, values)
        if self.refuses:
            raise self.refuses
        return self.actions

    def apply(self, plan: Plan) -> Any:
        self.plans.append(plan)
        plan.connection.cursor().execute("INSERT INTO effects VALUES (1)")
        if self.fails:
            raise self.fails
        return self.result

    def operation(self, **options: Any) -> Operation:
        return Operation("change", self.plan, self.apply, **options)


def effects(crib: Crib) -> int:
    return len(crib.run("SELECT one FROM effects"))

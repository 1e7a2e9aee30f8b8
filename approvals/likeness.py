"""Which plans do the same, only to other objects: the queue folds them into one row (SEC-23)."""

from __future__ import annotations

from typing import Any

from approvals.digest import neutral
from plans.canonical import jcs, sha256_hex
from plans.models import Plan
from plans.strict_json import JsonValue


def likeness(plan: Plan, risk: str, policy_version: str) -> str:
    """The same text for plans of one agent that differ in nothing but which objects they touch.

    Alike: target, operation, agent, risk, policies, verification, and every action with its field,
    old and new value, in order. Inputs and the agent's words do not count. Empty for a re-plan:
    it carries news, and always has a row of its own.
    """
    if plan.revision > 1:
        return ""
    names: list[JsonValue] = [plan.operation_id, plan.agent_id, risk, policy_version]
    return sha256_hex(jcs([*names, plan.verification, *_acts(plan.actions)]))[:32]


def _acts(actions: list[dict[str, Any]]) -> list[JsonValue]:
    """What is done: objects by their number in the plan instead of by their name."""
    numbers: dict[str, int] = {}
    return [
        neutral(action | {"target": numbers.setdefault(str(action["target"]), len(numbers))})
        for action in actions
    ]

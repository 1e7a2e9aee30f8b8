"""What conditions may read of a plan: the target's values, never the agent's narration (B-10)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from approvals.formats import minus
from plans.models import Plan

type Facts = dict[str, Any]
type Action = Mapping[str, Any]
_INT64 = 2**63


def of_plan(plan: Plan) -> list[Facts]:
    """One set of facts for each object of the plan; a condition that is true of one is true.

    What the target did not confirm is withheld: the inputs it does not return (T-2), and without
    a read-back everything but the names.
    """
    names: Facts = {
        "target": plan.target.name,
        "operation": plan.operation.name,
        "agent": plan.agent.name,
    }
    if not plan.verified:
        return [names]
    if plan.inputs_confirmed:
        names["inputs"] = _number_safe(json.loads(bytes(plan.inputs)))
    return of_actions(names, plan.actions)


def of_actions(names: Facts, actions: Sequence[Action]) -> list[Facts]:
    """The facts of a bundle, so that no action can hide behind another of the same field."""
    whole = names | {
        "objects": list(dict.fromkeys(str(action["target"]) for action in actions)),
        "actions": _number_safe(list(actions)),
    }
    return [whole | _number_safe(_ends(chosen)) for chosen in _readings(actions)]


def _readings(actions: Sequence[Action]) -> Iterator[dict[str, Action]]:
    """Field → action, in as many ways as fields repeat; every action is in one of them.

    Beside the fields of an object stand those that only others have, so that none is missing.
    """
    everywhere = {field: found[0] for field, found in _by_field(actions).items()}
    for name in dict.fromkeys(str(action["target"]) for action in actions):
        own = _by_field([action for action in actions if str(action["target"]) == name])
        for turn in range(max(map(len, own.values()))):
            chosen = {field: found[min(turn, len(found) - 1)] for field, found in own.items()}
            yield everywhere | chosen


def _by_field(actions: Sequence[Action]) -> dict[str, list[Action]]:
    fields: dict[str, list[Action]] = {}
    for action in actions:
        fields.setdefault(str(action.get("field", "")), []).append(action)
    return fields


def _ends(chosen: Mapping[str, Action]) -> Facts:
    ends: Facts = {"from": {}, "to": {}, "delta": {}}
    for field, action in chosen.items():
        for end in ("from", "to"):
            if end in action:
                ends[end][field] = action[end]
        step = minus(action.get("to"), action.get("from"))
        if step is not None:
            ends["delta"][field] = step if isinstance(step, int) else float(step)
    return ends


def _number_safe(value: Any) -> Any:
    """1e21 comes back from jsonb as an integer; CEL's end at 64 bits, and it is that double."""
    if isinstance(value, Mapping):
        return {name: _number_safe(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_number_safe(item) for item in value]
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        return float(value)
    return value

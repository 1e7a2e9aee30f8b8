"""Bodies of requests. A plan goes into its request as it came from the target, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from countersign_agent.documents import freeze_inputs
from countersign_agent.secret import Secret


def text(members: Mapping[str, Any]) -> Secret:
    """A body without what is empty. A Secret like every body: one of them holds a token."""
    return Secret(_dumps(members))


def wish(
    target: str,
    operation: str,
    task_id: str,
    inputs: bytes | str | Mapping[str, Any],
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """What both ways in have. An object becomes its RFC 8785 text, a text stays what it is."""
    if isinstance(inputs, Mapping):
        inputs = freeze_inputs(inputs)
    exact = inputs.decode() if isinstance(inputs, bytes) else inputs
    names = {"target": target, "operation": operation, "task_id": task_id, "inputs": exact}
    return names | {name: value for name, value in more.items() if value}


def with_plan(members: Mapping[str, Any], plan: Secret | Mapping[str, Any]) -> Secret:
    """The members, and the dry run's answer under `plan`."""
    verbatim = plan.reveal() if isinstance(plan, Secret) else _dumps(plan)
    return Secret(f'{_dumps(members)[:-1]},"plan":{verbatim}}}')


def _dumps(members: Mapping[str, Any]) -> str:
    given = {name: value for name, value in members.items() if value is not None}
    return json.dumps(given, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

"""The commit, for programs that send it to a target themselves and without the guard."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from countersign_agent.errors import Misuse
from countersign_agent.instants import now, read_instant
from countersign_agent.secret import Secret
from countersign_agent.targets import CommitCall

_TEXT: Final = {"type": "string", "minLength": 1}
_KEY: Final = r"^[A-Za-z0-9._:-]{8,128}$"
_PLAN_ID: Final = r"^[A-Za-z0-9._~-]{1,128}$"

COMMIT_SCHEMA: Final[Mapping[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Commit",
    "description": (
        "One commit of one plan, as its dry run answered it. It has no inputs: the plan is for"
        " exactly the inputs of its dry run, and a change needs a new plan. The key is made once"
        " before the first attempt and is the same in every retry. For programs, never for models."
    ),
    "type": "object",
    "properties": {
        "plan_id": {**_TEXT, "pattern": _PLAN_ID},
        "plan_token": _TEXT,
        "input_fingerprint": _TEXT,
        "expires_at": {**_TEXT, "format": "date-time"},
        "idempotency_key": {**_TEXT, "pattern": _KEY},
    },
    "required": [
        *("plan_id", "plan_token", "input_fingerprint", "expires_at", "idempotency_key"),
    ],
    # Beside `required`, for those who take the members over into a larger document.
    "dependentRequired": {
        "plan_token": ["plan_id", "input_fingerprint", "expires_at"],
        "input_fingerprint": ["plan_token"],
    },
    "additionalProperties": False,
}
"""JSON Schema 2020-12. Presence alone would let `null` and `""` through, so every text has both."""


class CommitIncomplete(Misuse):
    """The commit is not one that may be sent; nothing was."""


def commit_call(operation: str, members: Mapping[str, Any], attempt: int = 1) -> CommitCall:
    """A commit for `Target.commit`, from the members that COMMIT_SCHEMA asks for.

    The body is exactly the token and the fingerprint, serialised once: pass the same call on in
    every retry. CommitIncomplete, whose message names members and never values.
    """
    _check(members)
    if read_instant(members["expires_at"]) <= now():
        error = CommitIncomplete("The plan has expired: make a new dry run.")
        error.next_action = "replan"
        raise error
    body = {name: members[name] for name in ("plan_token", "input_fingerprint")}
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    key = members["idempotency_key"]
    return CommitCall(operation, members["plan_id"], Secret(text), key, attempt)


def _check(members: Mapping[str, Any]) -> None:
    properties: Mapping[str, Any] = COMMIT_SCHEMA["properties"]
    if not set(members) <= set(properties):
        raise CommitIncomplete(f"A commit has only {', '.join(properties)}.")
    for name, schema in properties.items():
        value = members.get(name)
        if not isinstance(value, str) or not value:
            raise CommitIncomplete(f"A commit needs {name}, as a text that is not empty.")
        if "pattern" in schema and not re.fullmatch(schema["pattern"], value, re.ASCII):
            raise CommitIncomplete(f"{name} does not match {schema['pattern']}.")
    try:
        read_instant(members["expires_at"])
    except ValueError:
        raise CommitIncomplete("expires_at is no RFC 3339 time with an offset.") from None

"""What an `application/problem+json` answer says (RFC 9457)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, get_args

from countersign_agent.documents import NotStrict, read_object
from countersign_agent.exchanges import Answer

NextAction = Literal[
    "wait",
    "done",
    "replan",
    "replanning",
    "stop",
    "investigate",
    "fix_request",
    "retry_same",
    "commit",
]
"""What an agent branches on. `commit` (look, then commit) comes from the guard alone."""

LONGEST_RETRY_AFTER: Final = 300.0


@dataclass(frozen=True, slots=True)
class FieldFault:
    """One fault of a request, and an RFC 6901 pointer to it."""

    pointer: str
    detail: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A refusal in its own words; `code` is empty when it has none."""

    status: int
    code: str = ""
    title: str = ""
    detail: str = ""
    next_action: NextAction = "investigate"
    errors: tuple[FieldFault, ...] = ()
    plan_id: str | None = None
    plan_status: str | None = None
    replaced_by: str | None = None
    retry_after: float | None = None
    """Seconds, at most 300."""


def read_problem(answer: Answer) -> Problem:
    """Whatever can be read of a refusal, from anybody; never fails."""
    try:
        body = read_object(answer.body)
    except NotStrict:
        body = {}
    action = _text(body, "next_action")
    return Problem(
        status=answer.status,
        code=_code(body),
        title=_text(body, "title"),
        detail=_text(body, "detail"),
        next_action=cast("NextAction", action if action in get_args(NextAction) else "investigate"),
        errors=_faults(body.get("errors")),
        plan_id=_text(body, "plan_id") or None,
        plan_status=_text(body, "plan_status") or None,
        replaced_by=_text(body, "replaced_by") or None,
        retry_after=retry_after(answer),
    )


def retry_after(answer: Answer) -> float | None:
    """Seconds that the other side asks for, at most 300; junk and dates are ignored (T-9)."""
    text = answer.headers.get("retry-after", "").strip()
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII):
        return None
    return min(float(text), LONGEST_RETRY_AFTER)


def _code(body: dict[str, Any]) -> str:
    """Its `code`, else the last part of its `type`."""
    uri = _text(body, "type")
    last = "" if uri == "about:blank" else re.split(r"[/#:]", uri.rstrip("/"))[-1]
    return (_text(body, "code") or last).lower().replace("_", "-")[:200]


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    return value[:2000] if isinstance(value, str) else ""


def _faults(items: Any) -> tuple[FieldFault, ...]:
    found = [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []
    return tuple(FieldFault(_text(each, "pointer"), _text(each, "detail")) for each in found)

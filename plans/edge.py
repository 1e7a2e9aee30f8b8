"""The edge of the REST interface: from bytes to values, or to a problem that says where (A-18)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from plans.custody import find_token
from plans.errors import (
    CATALOGUE,
    ContentEncodingNotAllowed,
    FieldError,
    InvalidField,
    Problem,
    TokenElsewhere,
    UnknownField,
    UnsupportedMediaType,
)
from plans.strict_json import JsonObject, escape, parse_object

_JSON_UTF8 = re.compile(
    r'application/json[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*"?utf-8"?[ \t]*)?;?', re.IGNORECASE
)
_CODES: Final[Mapping[str, str]] = {"missing": "missing-field", "extra_forbidden": "unknown-field"}
_WAIT = re.compile(r'\bwait[ \t]*=[ \t]*"?([0-9]{1,9})"?[ \t]*(?:[,;]|$)', re.ASCII)
MAX_WAIT_SECONDS = 30
MAX_FAULTS = 20


def read_body(raw: bytes, *, content_type: str, content_encoding: str) -> JsonObject:
    """The object in a request's body. Raises Problems: 415, 400 or 422 (BI-1…BI-16).

    A plan token that stands anywhere but in its place is refused here, before another problem
    could point at a member that is named like it.
    """
    if content_encoding.strip():
        raise ContentEncodingNotAllowed()
    if not _JSON_UTF8.fullmatch(content_type.strip()):
        raise UnsupportedMediaType()
    body = parse_object(raw)
    plan = body.get("plan")
    token = plan.get("plan_token") if isinstance(plan, dict) else None
    if isinstance(token, str):
        pointer = find_token(body, token, allowed="/plan/plan_token")
        if pointer is not None:
            raise TokenElsewhere(pointer=pointer)
    return body


def as_problem(faults: Iterable[Mapping[str, Any]], *, skip: int = 0) -> Problem:
    """The one problem for what pydantic found; unknown members go first, they explain the rest.

    `skip` is how many leading steps of each location stand for no member of the body.
    """
    found: list[tuple[str, FieldError]] = []
    for fault in faults:
        code = _CODES.get(fault["type"], fault["type"])
        detail = UnknownField.message() if code == UnknownField.code else str(fault["msg"])
        found.append((code, FieldError(_pointer(fault["loc"][skip:]), detail)))
    found.sort(key=lambda item: item[0] != UnknownField.code)
    problem = CATALOGUE.get(found[0][0], InvalidField)
    errors = [error for _, error in found[:MAX_FAULTS]]
    return problem(errors[0].detail, errors=errors)


def _pointer(steps: Sequence[str | int]) -> str:
    return "".join(f"/{escape(step)}" for step in steps)


def wait_seconds(prefer: str) -> int | None:
    """The seconds of `Prefer: wait=N`, at most 30; None when it does not ask (RFC 7240).

    A preference that cannot be read is ignored, as the RFC wants it.
    """
    wish = _WAIT.search(prefer)
    return min(int(wish[1]), MAX_WAIT_SECONDS) if wish else None

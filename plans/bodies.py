"""What a target's answer says, in the few words that anything is decided by. Strict and pure."""

from __future__ import annotations

import re

from plans.errors import Problem
from plans.exchanges import Answer
from plans.strict_json import JsonObject, JsonValue, parse

MAX_WORDS = 2_000
"""Characters of a target's own words that are kept."""


def read_object(answer: Answer) -> JsonObject | None:
    """The answer's body as a strict JSON object, or None when it is anything else (BI-50)."""
    try:
        body = parse(answer.body, max_bytes=2**20, max_members=20_000, max_string=2**20)
    except Problem:
        return None
    return body if isinstance(body, dict) else None


def code_of(body: JsonObject) -> str | None:
    """The problem's word for itself: its `code`, else the last part of its `type` (RFC 9457)."""
    code = text(body.get("code"))
    if code is None and (uri := text(body.get("type"))) not in (None, "about:blank"):
        code = re.split(r"[/#:]", (uri or "").rstrip("/"))[-1]
    return code.lower().replace("_", "-")[:MAX_WORDS] if code else None


def changed_in(body: JsonObject) -> list[JsonObject] | None:
    """The `changed` list, if it names at least one path and nothing else is in it (T-7)."""
    items = body.get("changed")
    if not isinstance(items, list) or not items:
        return None
    moved = [item for item in items if isinstance(item, dict) and text(item.get("path"))]
    return moved if len(moved) == len(items) else None


def is_replayed(answer: Answer) -> bool:
    """Whether the target says that this is a stored answer to an earlier use of the key."""
    return answer.headers.get("idempotent-replayed", "").strip().lower() in ("true", "?1")


def text(value: JsonValue) -> str | None:
    """A string with something in it, or None."""
    return value if isinstance(value, str) and value else None


def problem(status: int | None, code: str | None, detail: JsonValue) -> JsonObject:
    """What is stored and shown of a refusal: {status, code, detail} (A-6)."""
    words = detail[:MAX_WORDS] if isinstance(detail, str) else None
    return {"status": status, "code": code, "detail": words}

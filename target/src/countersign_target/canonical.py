"""Texts and hashes that two parties agree about byte for byte, and times as they are written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import rfc8785


def plain(value: Any) -> Any:
    """`value` as JSON has it: moments, dates, decimals, UUIDs become texts, tuples lists.

    TypeError for what has no such form, so that nothing is shown that is only a `repr`.
    """
    match value:
        case Enum():
            return plain(value.value)
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return rfc3339(value) if value.tzinfo else value.isoformat()
        case date() | time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case Mapping():
            return {str(name): plain(member) for name, member in value.items()}
        case list() | tuple():
            return [plain(member) for member in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON: make it a text or a number")


def jcs(value: Any) -> bytes:
    """The RFC 8785 text of a plain value; ValueError for integers beyond ±(2^53-1)."""
    return rfc8785.dumps(value)


def same(left: Any, right: Any) -> bool:
    """Whether two plain values have one RFC 8785 text: 1 equals 1.0, true never equals 1."""
    return jcs(left) == jcs(right)


def fingerprint(operation: str, inputs: Any, state: Any) -> str:
    """The input fingerprint: a hash over the inputs and the state that a plan was made from."""
    text = jcs({"operation": operation, "inputs": inputs, "state": state})
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def token_hash(token: str) -> bytes:
    """What is kept of a plan token: who reads the table cannot commit anything."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def compact(value: Any) -> str:
    """JSON text without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def rfc3339(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds and `Z`: `2026-01-31T09:31:12.040Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + (
        f"{moment.microsecond // 1000:03d}Z"
    )

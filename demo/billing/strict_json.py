"""JSON as it comes from outside: one meaning or none."""

import json
from typing import Any

from .problems import Problem, not_allowed

MAX_CENTS = 1_000_000_000


def parse_object(raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw` (UTF-8, no BOM, no duplicate names, no NaN); else a 400 problem."""
    try:
        value = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_without_duplicates, parse_constant=_refuse
        )
    except (ValueError, RecursionError):
        raise Problem(400, "malformed-json", "The body is not strict JSON.") from None
    if not isinstance(value, dict):
        raise not_allowed(("", "must be an object"))
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate name")
    return members


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def unknown_members(body: dict[str, Any], *known: str) -> list[tuple[str, str]]:
    """An error for each member of `body` that is not `known`."""
    escaped = (name.replace("~", "~0").replace("/", "~1") for name in body if name not in known)
    return [(f"/{name}", "is not known here") for name in escaped]


def cents_errors(body: dict[str, Any], member: str = "amount_cents") -> list[tuple[str, str]]:
    """An error unless `body[member]` is a whole number of cents, 1 to `MAX_CENTS`."""
    value = body.get(member)
    # A bool is an int to Python, and is no amount of money.
    if type(value) is int and 0 < value <= MAX_CENTS:
        return []
    return [(f"/{member}", f"must be a whole number from 1 to {MAX_CENTS}")]

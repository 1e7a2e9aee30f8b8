"""JSON as it comes from outside: one meaning or none (A-18's rules, at the target's edge)."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

from countersign_target.problems import Problem, not_allowed

MAX_DEPTH: Final = 32
SAFE_INTEGER: Final = 2**53 - 1
_FORBIDDEN: Final = re.compile("[\ud800-\udfff\x00]")
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


def parse_object(raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`, or a refusal of anything that two readers may differ on.

    400 `malformed-json`: not UTF-8, a byte order mark, a name twice, NaN, nested deeper than 32.
    422: NUL or a lone surrogate, an integer beyond ±(2^53-1), a number beyond a double, another
    value than an object.
    """
    try:
        _check_depth(raw)
        value = _DECODER.decode(raw.decode("utf-8"))
        _check_texts(value)
    except _Beyond as beyond:
        raise not_allowed(("", str(beyond))) from None
    except (ValueError, RecursionError):
        raise Problem(400, "malformed-json", "The body is not strict JSON.") from None
    if not isinstance(value, dict):
        raise not_allowed(("", "must be an object"))
    return value


def unknown_members(body: dict[str, Any], *known: str) -> list[tuple[str, str]]:
    """An error for each member of `body` that is not `known`: (pointer, what is wrong)."""
    return [(f"/{escape(name)}", "is not known here") for name in body if name not in known]


def escape(name: str | int) -> str:
    """One reference token of an RFC 6901 pointer."""
    return str(name).replace("~", "~0").replace("/", "~1")


class _Beyond(Exception):
    """JSON, and more than can be kept and read back."""


def _check_depth(raw: bytes) -> None:
    """Before the scanner sees the text: it recurses."""
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    for byte in _STRING.sub(b"", raw):
        if byte in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError("too deep")
        elif byte in b"]}":
            depth -= 1


def _check_texts(value: Any) -> None:
    if isinstance(value, str) and _FORBIDDEN.search(value):
        raise _Beyond("has a text with NUL or a lone surrogate")
    if isinstance(value, dict):
        for name, member in value.items():
            _check_texts(name)
            _check_texts(member)
    elif isinstance(value, list):
        for member in value:
            _check_texts(member)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate name")
    return members


def _integer(digits: str) -> int:
    # The length first: int() refuses more than 4,300 digits with an exception of its own.
    if len(digits) > 17 or abs(int(digits)) > SAFE_INTEGER:
        raise _Beyond("has an integer beyond what a double holds exactly")
    return int(digits)


def _real(digits: str) -> float:
    number = float(digits)
    # RFC 8785 writes whole doubles as integers, which then could not be read back.
    if number in (float("inf"), float("-inf")) or SAFE_INTEGER < abs(number) < 1e21:
        raise _Beyond("has a number beyond what a double holds")
    return number


def _constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_integer, parse_float=_real, parse_constant=_constant
)

"""Where a text is no JSON, and which rule it breaks there: in words that repeat nothing of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

# Possessive, so that 256 KiB of quotes and backslashes are read once.
_STRINGS_AND_BRACKETS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_RULES: Final = {
    "Expecting value": "a value is expected",
    "Expecting property name enclosed in double quotes": "a name in double quotes is expected",
    "Expecting ':' delimiter": "a colon is expected",
    "Illegal trailing comma before end of object": "no comma may stand before the closing }",
    "Illegal trailing comma before end of array": "no comma may stand before the closing ]",
    "Extra data": "nothing may follow the value",
    "Unterminated string starting at": "the string that begins here has no end",
    "Invalid control character at": "a control character in a string must be escaped",
    "Invalid \\escape": "JSON has no such escape",
    "Invalid \\uXXXX escape": "four hexadecimal digits are expected after \\u",
}
_COMMA: Final = "Expecting ',' delimiter"
_CLOSING: Final = {"{": "}", "[": "]"}
_ENDS: Final = "the text ends, and "


def place(before: str) -> str:
    """Of what follows this beginning of a text; both numbers count from 1, columns characters."""
    return f"Line {before.count('\n') + 1}, column {len(before) - before.rfind('\n')}"


def broken(fault: json.JSONDecodeError) -> str:
    """`Line 3, column 14: a comma or } is expected.` The standard library's words may hold more."""
    before = fault.doc[: fault.pos]
    if fault.msg == _COMMA:
        rule = f"a comma or {_CLOSING[_innermost(before)]} is expected"
    else:
        rule = _RULES.get(fault.msg.rstrip(": "), "this is no JSON")
    ends = _ENDS if fault.pos == len(fault.doc) and rule.endswith("expected") else ""
    return f"{place(before)}: {ends}{rule}."


def too_deep(text: str, most: int) -> str:
    """Of the first bracket beyond so many levels; there is one."""
    depth = 0
    for at, bracket in _brackets(text):
        depth += 1 if bracket in _CLOSING else -1
        if depth > most:
            return place(text[:at])
    raise ValueError(f"nothing is deeper than {most} levels")


def _innermost(before: str) -> str:
    """The bracket that is open at the end of a text which is JSON so far."""
    opened: list[str] = []
    for _, bracket in _brackets(before):
        if bracket in _CLOSING:
            opened.append(bracket)
        else:
            opened.pop()
    return opened[-1]


def _brackets(text: str) -> Iterator[tuple[int, str]]:
    for found in _STRINGS_AND_BRACKETS.finditer(text):
        if not found[0].startswith('"'):
            yield found.start(), found[0]

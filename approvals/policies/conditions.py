"""CEL conditions: compiled once, evaluated within bounds, and never quietly false (B-7, SEC-28).

The library is the one that CEL's authors keep: type-checked, regular expressions in linear time,
at most 10,000 iterations and 32 levels. It is loaded by the first policy, not by the web's start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final

from django.utils.translation import gettext as _

MAX_LENGTH: Final = 2_000
_LONGEST_REASON: Final = 200
# Strings, and maps of JSON values (B-7).
_STRINGS: Final = ("target", "operation", "agent", "risk")
_MAPS: Final = ("from", "to", "delta", "inputs")
_FAULT: Final = re.compile(r"ERROR: <input>:([0-9]+):([0-9]+): ([^\n]+)")
_CODE: Final = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_UNBOUND: Final = re.compile(r'No value with name "([a-z]+)" found in Activation')


class Unclear(Exception):
    """Neither true nor false; `reads` names the variable that was withheld, if that is why."""

    def __init__(self, reason: str, reads: str = "") -> None:
        self.reads = reads
        super().__init__(reason[:_LONGEST_REASON])


def complaint(text: str) -> str | None:
    """What is wrong with a condition, with line and column; None: it can be evaluated."""
    if len(text) > MAX_LENGTH:
        return _("is longer than {number} characters").format(number=MAX_LENGTH)
    try:
        program = _compiled(text)
    except Exception as error:
        return _("is no CEL condition: {fault}").format(fault=_position(str(error)))
    if program.return_type().name() not in ("BOOL", "DYN"):
        return _("is no condition: it must come to true or false")
    return None


def holds(text: str, facts: Mapping[str, Any]) -> bool:
    """Whether the condition is true of these facts; a variable without a fact is withheld.

    Raises Unclear where CEL has no answer. What is decided without a withheld variable, by `&&`
    or `||`, is decided.
    """
    if wrong := complaint(text):
        raise Unclear(wrong)
    try:
        answer = _compiled(text).eval(data=dict(facts)).value()
    except Exception as error:
        # Whatever a native library raises, nothing is approved on the strength of it (SEC-28).
        raise Unclear(_plain(str(error))) from error
    if isinstance(answer, bool):
        return answer
    reason = str(answer)
    unbound = _UNBOUND.search(reason)
    raise Unclear(_plain(reason), unbound[1] if unbound else "")


@lru_cache(maxsize=512)
def _compiled(text: str) -> Any:
    return _environment().compile(text)


@cache
def _environment() -> Any:
    from cel_expr_python import cel

    kinds, strings = cel.Type, cel.Type.STRING
    record = kinds.Map(strings, kinds.DYN)
    variables = {
        **dict.fromkeys(_STRINGS, strings),
        **dict.fromkeys(_MAPS, record),
        "objects": kinds.List(strings),
        "actions": kinds.List(record),
    }
    return cel.NewEnv(variables=variables)


def _position(message: str) -> str:
    """`line 1, column 11: …` of the first fault, where the message has one."""
    found = _FAULT.search(message)
    if found is None:
        return _plain(message)
    line, column, words = found.groups()
    words = words.removesuffix(" (in container '')")[:_LONGEST_REASON]
    text = _("line {line}, column {column}: {words}")
    return text.format(line=line, column=column, words=words)


def _plain(message: str) -> str:
    return _CODE.sub("", message.partition("\n")[0])

"""JSON as the app reads a target's answer: what it would refuse is no answer (A-18)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from countersign_agent.documents import NotStrict, read_object

DEEPEST: Final = 32
SAFE_INTEGER: Final = 2**53 - 1
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes of a body and of one string; members and elements in all."""

    size: int
    string: int
    members: int


PLANS: Final = Limits(2**18, 2**16, 2_000)
"""Of a plan, from the dry run and read back."""
COMMITS: Final = Limits(2**20, 2**20, 20_000)
"""Of the answer to a commit."""


def read_answer(body: bytes, limits: Limits = PLANS) -> dict[str, Any]:
    """The JSON object that is the whole body. NotStrict says in words what the app refuses.

    The words name no value: a body may hold a plan token.
    """
    if len(body) > limits.size:
        raise NotStrict(f"the answer is larger than {limits.size // 1024} KiB")
    if not body:
        raise NotStrict("the answer has no body")
    try:
        found = read_object(body)
    except NotStrict:
        found = None
    if found is None:
        raise NotStrict(
            "the body is not one strict JSON object in UTF-8 (no name twice, no NaN, no BOM)"
        )
    _Walk(limits).look(found, 1)
    return found


class _Walk:
    """One walk over a value that a stranger sent; it counts and measures."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.members = 0

    def look(self, value: Any, depth: int) -> None:
        if depth > DEEPEST:
            raise NotStrict(f"it is nested deeper than {DEEPEST} levels")
        match value:
            case dict():
                self._count(len(value))
                for name, each in value.items():
                    self._text(name)
                    self.look(each, depth + 1)
            case list():
                self._count(len(value))
                for each in value:
                    self.look(each, depth + 1)
            case str():
                self._text(value)
            case int() if not isinstance(value, bool) and abs(value) > SAFE_INTEGER:
                raise NotStrict("a whole number is beyond 2^53 - 1; send it as a string")
            case float() if abs(value) == float("inf"):
                raise NotStrict("a number is beyond the range of doubles")

    def _count(self, more: int) -> None:
        self.members += more
        if self.members > self.limits.members:
            raise NotStrict(f"it has more than {self.limits.members} members and elements")

    def _text(self, text: str) -> None:
        if _SURROGATE.search(text):
            raise NotStrict("a string holds half a surrogate pair")
        if "\0" in text:
            raise NotStrict("a string holds a NUL")
        if len(text.encode()) > self.limits.string:
            raise NotStrict(f"a string is longer than {self.limits.string // 1024} KiB")

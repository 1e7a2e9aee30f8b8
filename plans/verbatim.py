"""Members of a JSON object as they were written: numbers keep their spelling (A-18).

For texts that the strict parser has accepted; others have no meaning here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()


def members(text: str) -> Iterator[tuple[str, str, str]]:
    """Each member of the object that is the whole text: its name, and name and value as written."""
    at = _past_space(text, _past_space(text, 0) + 1)
    while text[at] == '"':
        began = at
        name, at = _DECODER.raw_decode(text, at)
        written = text[began:at]
        value = _past_space(text, _past_space(text, at) + 1)
        _, at = _DECODER.raw_decode(text, value)
        yield name, written, text[value:at]
        at = _past_space(text, at)
        if text[at] == ",":
            at = _past_space(text, at + 1)


def member(text: str, name: str) -> str:
    """The value of one member, as written. KeyError where there is none."""
    for found, _, value in members(text):
        if found == name:
            return value
    raise KeyError(name)


def without(text: str, name: str) -> str:
    """The object without one member; the others in their order, as written."""
    kept = (f"{written}:{value}" for found, written, value in members(text) if found != name)
    return "{" + ",".join(kept) + "}"


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at

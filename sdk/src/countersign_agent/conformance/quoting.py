"""What a target said, made harmless before a person or a program reads it.

Its text is hostile: it may move a terminal's cursor, turn the reading direction, forge a line of
the report, or hold the very secrets that it was given.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

from countersign_agent.secret import Secret

LONGEST: Final = 80
# Shorter ones are words: hiding them would tear holes into every sentence.
SHORTEST_SECRET: Final = 8
# Letters and marks that show nothing, though no category says so.
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_HARMLESS: Final = frozenset("LMNPS")


class Quoting:
    """Quotes texts of one target. Every secret that it could repeat is told here first."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self._secrets = [each for each in secrets if len(each.reveal()) >= SHORTEST_SECRET]

    def hide(self, secret: Secret) -> None:
        """From here on no quotation holds this text."""
        if len(secret.reveal()) >= SHORTEST_SECRET:
            self._secrets.append(secret)

    def __call__(self, value: object) -> str:
        """One short line in quotation marks: a text as it is, anything else by its kind."""
        if not isinstance(value, str):
            return _kind(value)
        for secret in self._secrets:
            value = value.replace(secret.reveal(), "…")
        short = value if len(value) <= LONGEST else value[: LONGEST - 1] + "…"
        return f"“{visible(short)}”"


def visible(text: str) -> str:
    """The text on one line: what shows nothing, or steers a terminal, as its code point."""
    return "".join(each if _shows(each) else f"⟨U+{ord(each):04X}⟩" for each in text)


def _shows(character: str) -> bool:
    if character == " ":
        return True
    variation = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    known = unicodedata.category(character)[0] in _HARMLESS
    return known and not variation and character not in _INVISIBLE


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            # A number of 300 digits is a text, too.
            return str(value) if abs(value) < 1e15 else "a very large number"
        case dict():
            return "an object"
        case list():
            return "a list"
    return "something else"

"""Any JSON value as text that a person can trust: nothing hidden, nothing cut (SEC-13, SEC-14).

What comes out of here is plain text for templates that escape it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Final, cast

from django.utils.translation import gettext as _

from approvals.formats import formatted
from approvals.lookalikes import Badge, badges, punycoded
from audit.safe_text import visible
from plans.strict_json import JsonValue

# Longer ones are folded up by the page until the reviewer opened them; never cut.
LONG_TEXT: Final = 240
LONG_LINES: Final = 6
_ONE_LINE: Final = 60
_MARKS_IN_A_ROW: Final = 8
_LINE_ENDS_IN_A_ROW: Final = 3

_SPACES = re.compile(r"\A +| +\Z| {2,}| +(?=\n)|(?<=\n) +")
_LINE_ENDS = re.compile(r"\n+")
_MANY_LINE_ENDS = re.compile(r"\n{4,}")
# Strings that could be taken for another kind of value get quotes and a word.
_AMBIGUOUS = re.compile(r"(?:null|true|false|[-+]?[0-9][0-9.,eE+-]*|[\"'\[{\u201c].*|)", re.DOTALL)
_RTL: Final = frozenset({"R", "AL", "AN"})


class Missing:
    """The member is not there at all, which is not the same as null."""


MISSING: Final = Missing()


@dataclass(frozen=True, slots=True)
class Shown:
    """A value on a page. `raw` is the exact value where `text` is a formatted one."""

    text: str
    raw: str = ""
    kind: str = ""
    badges: tuple[Badge, ...] = ()

    @property
    def long(self) -> bool:
        return len(self.text) > LONG_TEXT or self.text.count("\n") > LONG_LINES

    @property
    def size(self) -> str:
        """How much there is to open, in words."""
        lines = self.text.count("\n") + 1
        characters = f"{len(self.text):,}"
        if lines == 1:
            return _("{number} characters").format(number=characters)
        return _("{number} characters in {lines} lines").format(number=characters, lines=lines)


def show(value: JsonValue | Missing, spec: str = "", *, identifier: bool = False) -> Shown:
    """One value in full, with its format if it fits and with what one cannot see in it."""
    if isinstance(value, Missing):
        return Shown(_("not given"), kind=_("missing"))
    if value is None:
        return Shown("null", kind=_("no value"))
    if isinstance(value, bool):
        return Shown(json.dumps(value), kind=_("true or false"))
    text = formatted(value, spec) if spec else None
    if text is not None:
        return Shown(text, raw=_plain(value))
    if isinstance(value, str):
        return _string(value, identifier)
    if isinstance(value, dict | list):
        text = _tree(value)
        return Shown(text, kind=_("structure"), badges=badges(_all_text(value)))
    return Shown(_plain(value))


def field_of(action: dict[str, JsonValue], name: str) -> JsonValue | Missing:
    """A member of an action, or MISSING."""
    return action.get(name, MISSING)


def name(text: object) -> Shown:
    """An identifier: an object, a field, an operation."""
    return _string(text if isinstance(text, str) else _plain(cast("JsonValue", text)), True)


def prose(text: str) -> str:
    """Somebody's words over several lines; a screenful of empty lines shrinks to its count."""
    text = text.replace("\r\n", "\n")
    words = _("⟨{count} line ends⟩")
    marked = _MANY_LINE_ENDS.sub(lambda m: f"\n{words.format(count=len(m[0]))}\n", text)
    return visible(marked, lines=True)


def url(text: str) -> Shown:
    """An address as text, its host in punycode; pages never make a link of it (SEC-12)."""
    return _string(text, True)


def exact_text(raw: bytes) -> Shown:
    """Bytes that were stored verbatim, as text with every byte accounted for."""
    return Shown(_marked(raw.decode("utf-8", "backslashreplace")))


def runs(text: str) -> list[str]:
    """The text cut where its direction changes, each piece for a `<bdi>` of its own.

    Letters of a right-to-left script would otherwise pull the words around them across.
    """
    pieces: list[str] = []
    rtl = False
    for character in text:
        direction = unicodedata.bidirectional(character)
        turned = direction in _RTL if direction in _RTL or direction == "L" else rtl
        if not pieces or turned != rtl:
            pieces.append("")
        rtl = turned
        pieces[-1] += character
    return pieces


def _string(text: str, identifier: bool) -> Shown:
    shown = _marked(punycoded(text))
    found = badges(text, identifier=identifier)
    if not identifier and _AMBIGUOUS.fullmatch(text):
        return Shown(f'"{shown}"', kind=_("text"), badges=found)
    return Shown(shown, badges=found)


def _marked(text: str) -> str:
    """Line ends and runs of spaces made visible; long runs shrink to their count."""
    text = _SPACES.sub(lambda m: _marks("␣", len(m[0]), _MARKS_IN_A_ROW), text)
    text = _LINE_ENDS.sub(lambda m: _marks("⏎\n", len(m[0]), _LINE_ENDS_IN_A_ROW), text)
    return visible(text, lines=True)


def _marks(mark: str, number: int, most: int) -> str:
    return mark * number if number <= most else f"{mark[0]}\u00d7{number}{mark[1:]}"


def _plain(value: JsonValue) -> str:
    return visible(value) if isinstance(value, str) else json.dumps(value)


def _tree(value: JsonValue, indent: int = 0) -> str:
    """A list or an object on one line if it is short, else a line per member."""
    flat = _flat(value)
    if len(flat) <= _ONE_LINE or not isinstance(value, dict | list) or not value:
        return flat
    pad = "  " * (indent + 1)
    if isinstance(value, dict):
        lines = [f"{pad}{_quoted(key)}: {_tree(item, indent + 1)}" for key, item in value.items()]
    else:
        lines = [f"{pad}{_tree(item, indent + 1)}" for item in value]
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return f"{opening}\n" + ",\n".join(lines) + f"\n{'  ' * indent}{closing}"


def _flat(value: JsonValue) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(k)}: {_flat(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flat, value)) + "]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    """A JSON string: its line ends are `\\n` already."""
    return _marked(punycoded(json.dumps(text, ensure_ascii=False)))


def _all_text(value: JsonValue) -> str:
    """Every name and string of a structure, for the badges."""
    if isinstance(value, dict):
        return " ".join(f"{key} {_all_text(item)}" for key, item in value.items())
    if isinstance(value, list):
        return " ".join(map(_all_text, value))
    return value if isinstance(value, str) else ""

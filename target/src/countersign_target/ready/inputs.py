"""What an operation may be asked for: the inputs, each with its kind and its bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from countersign_target.ready.settings import Table

KINDS: Final[dict[str, type | tuple[type, ...]]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)
LONGEST: Final = 2_000

# What an object's name may hold as it is; the app refuses spaces and what one cannot see.
# No comma: it stands between the parts of a key.
PLAIN: Final = "!$&'()*+:;=@"
VISIBLE: Final = re.compile(r"[\x21-\x7e]{1,200}")

type Complaint = tuple[str, str]


def named(text: str) -> str:
    """A value as part of an object's name, in visible ASCII: what is not is percent-encoded."""
    return quote(text, safe=PLAIN)


@dataclass(frozen=True, slots=True)
class Input:
    """One declared input."""

    name: str
    kind: str
    optional: bool
    pattern: re.Pattern[str] | None
    longest: int
    least: float | None
    most: float | None
    words: tuple[str, ...]

    def complaint(self, value: Any) -> str | None:
        """What is wrong with a value; None: nothing."""
        is_kind = isinstance(value, KINDS[self.kind])
        # To Python true is 1; to whoever reads the plan it is not.
        if not is_kind or (isinstance(value, bool) and self.kind != "boolean"):
            return f"must be {'an' if self.kind == 'integer' else 'a'} {self.kind}"
        if isinstance(value, str):
            return self._text(value)
        return self._size(value)

    def _text(self, value: str) -> str | None:
        if len(value) > self.longest:
            return f"must have at most {self.longest} characters"
        if self.pattern and not self.pattern.fullmatch(value):
            return f"must match {self.pattern.pattern}"
        if self.words and value not in self.words:
            return f"must be one of {', '.join(self.words)}"
        return None

    def _size(self, value: float) -> str | None:
        if self.least is not None and value < self.least:
            return f"must be at least {self.least:g}"
        if self.most is not None and value > self.most:
            return f"must be at most {self.most:g}"
        return None


@dataclass(frozen=True, slots=True)
class Inputs:
    """All inputs of an operation; others are refused."""

    declared: Mapping[str, Input]

    def complaints(self, given: Mapping[str, Any]) -> list[Complaint]:
        """(pointer, what is wrong) for everything that is missing, unknown or out of bounds."""
        found = [
            (f"/{name.replace('~', '~0').replace('/', '~1')}", "is not known here")
            for name in given
            if name not in self.declared
        ]
        for name, declared in self.declared.items():
            if name in given:
                complaint = declared.complaint(given[name])
            else:
                complaint = None if declared.optional else "is missing"
            if complaint:
                found.append((f"/{name}", complaint))
        return found


def read_inputs(table: Table) -> Inputs:
    """The table `inputs` of an operation."""
    found = {}
    for name, each in table.named_tables().items():
        if not NAME.fullmatch(name):
            raise table.wrong(name, "a name is letters, digits and _, no digit first")
        found[name] = _read_one(name, each)
    return Inputs(found)


def _read_one(name: str, table: Table) -> Input:
    kind = table.one_of("type", tuple(KINDS))
    pattern = table.text("pattern", None) if "pattern" in table.values else None
    table.asked.add("pattern")
    return Input(
        name=name,
        kind=kind,
        optional=table.flag("optional"),
        pattern=_compiled(table, pattern),
        longest=table.whole("max_length", LONGEST, least=1),
        least=table.value("minimum", (int, float), None),
        most=table.value("maximum", (int, float), None),
        words=table.texts("enum", []),
    )


def _compiled(table: Table, pattern: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern, re.ASCII) if pattern is not None else None
    except re.error as fault:
        raise table.wrong("pattern", str(fault)) from None

"""A TOML file, its value, and the line on which each part of it stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from plans.configuration.faults import ConfigurationError, Fault

type Place = tuple[str | int, ...]
"""Where a value stands: `("targets", 0, "operations", 1, "title")`."""

_AT_LINE = re.compile(r" \(at (?:line ([0-9]+), column [0-9]+|end of document)\)")


class Document:
    """A parsed file. Raises ConfigurationError when it cannot be read or is no TOML."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = self._read()
        self.value = self._parse()

    @property
    def folder(self) -> Path:
        """Where the files that the document names are looked for."""
        return self.path.parent

    def line(self, place: Place) -> int | None:
        """The line on which the value at `place` begins, or the nearest part that holds it."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place)

    def error(self, *faults: Fault) -> ConfigurationError:
        return ConfigurationError(self.path.name, faults)

    def _read(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8")
        except OSError as error:
            raise self.error(Fault(None, f"cannot be read: {error.strerror}")) from None
        except UnicodeDecodeError:
            raise self.error(Fault(None, "is not UTF-8 text")) from None

    def _parse(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            found = _AT_LINE.search(str(error))
            last = self.text.rstrip("\n").count("\n") + 1
            line = int(found[1]) if found and found[1] else last
            detail = _AT_LINE.sub("", str(error))
        # Raised out here, so that no traceback holds the text, which may hold a secret.
        raise self.error(Fault(line, detail))

    @cached_property
    def _lines(self) -> dict[Place, int]:
        """Every place, by the shortest beginning of the file that already holds it.

        The parser itself finds the lines, so multi-line strings cannot mislead a second reading
        of ours. Quadratic, and only used once something is wrong.
        """
        lines = self.text.split("\n")
        found: dict[Place, int] = {}
        begins = 1
        for end in range(1, len(lines) + 1):
            try:
                value = tomllib.loads("\n".join(lines[:end]))
            except tomllib.TOMLDecodeError:
                continue
            for place in _places(value, ()):
                found.setdefault(place, begins)
            begins = end + 1
        return found


def _places(value: Any, place: Place) -> Iterator[Place]:
    if isinstance(value, dict):
        parts: Iterator[tuple[str | int, Any]] = iter(value.items())
    elif isinstance(value, list):
        parts = iter(enumerate(value))
    else:
        return
    for key, part in parts:
        yield (*place, key)
        yield from _places(part, (*place, key))

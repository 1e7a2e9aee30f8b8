"""A TOML file read key by key: unknown keys, missing keys and wrong kinds are errors with names."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

MISSING: Final[Any] = object()
PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)


class ConfigurationError(Exception):
    """The file cannot be used; the message says which key, and why. It never holds a secret."""


@dataclass(slots=True)
class Table:
    """One table of the file. Every key is asked for once; `done` refuses what nobody asked for."""

    values: Mapping[str, Any]
    name: str = ""
    asked: set[str] = field(default_factory=set)
    tables_read: list[Table] = field(default_factory=list)

    def where(self, key: str) -> str:
        """The key with the names of the tables around it."""
        return f"{self.name}.{key}" if self.name else key

    def wrong(self, key: str, complaint: str) -> ConfigurationError:
        """An error about one key."""
        return ConfigurationError(f"{self.where(key)}: {complaint}")

    def value(self, key: str, kinds: type | tuple[type, ...], default: Any = MISSING) -> Any:
        """The value of a key; a boolean is no number."""
        self.asked.add(key)
        value = self.values.get(key, default)
        if value is MISSING:
            raise self.wrong(key, "missing")
        if key not in self.values:
            return value
        wanted = kinds if isinstance(kinds, tuple) else (kinds,)
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            raise self.wrong(key, f"must be {' or '.join(kind.__name__ for kind in wanted)}")
        return value

    def text(self, key: str, default: Any = MISSING) -> str:
        """A string with something in it."""
        value = self.value(key, str, default)
        if value == "" and key in self.values:
            raise self.wrong(key, "must not be empty")
        return str(value)

    def one_of(self, key: str, words: tuple[str, ...], default: Any = MISSING) -> str:
        """One of these words."""
        word = self.text(key, default)
        if word not in words:
            raise self.wrong(key, f"must be one of {', '.join(words)}")
        return word

    def number(
        self, key: str, default: Any = MISSING, *, least: float = 0, most: float = 1e9
    ) -> float:
        """A number between `least` and `most`."""
        value = self.value(key, (int, float), default)
        if not least <= value <= most:
            raise self.wrong(key, f"must be {least:g} to {most:g}")
        return float(value)

    def whole(self, key: str, default: Any = MISSING, *, least: int = 0, most: int = 10**9) -> int:
        """A whole number between `least` and `most`."""
        value = self.value(key, int, default)
        if not least <= value <= most:
            raise self.wrong(key, f"must be {least} to {most}")
        return int(value)

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false."""
        return bool(self.value(key, bool, default))

    def texts(self, key: str, default: Any = MISSING) -> tuple[str, ...]:
        """A list of strings, none empty, none twice."""
        found = self.value(key, list, default)
        if not all(isinstance(each, str) and each for each in found):
            raise self.wrong(key, "must be a list of strings")
        if len(set(found)) != len(found):
            raise self.wrong(key, "names something twice")
        return tuple(found)

    def secret(self, key: str, default: Any = MISSING) -> str:
        """What `env:NAME` or `file:PATH` names; a secret in the file itself is refused."""
        given = self.text(key, default)
        kind, _, name = given.partition(":")
        if key not in self.values:
            return given
        if kind == "env" and name in os.environ:
            found = os.environ[name].strip()
        elif kind == "file" and Path(name).is_file():
            found = Path(name).read_text(encoding="utf-8").strip()
        elif kind == "env" and PLAIN_NAME.fullmatch(name):
            raise self.wrong(key, f"the environment variable {name} is not set")
        else:
            # The text itself may be the secret: it is not repeated.
            raise self.wrong(key, "must be env:NAME or file:PATH, of something that exists")
        if not found:
            raise self.wrong(key, "is empty where it points to")
        return found

    def table(self, key: str, default: Any = MISSING) -> Table:
        """A table inside this one."""
        table = Table(self.value(key, dict, default), self.where(key))
        self.tables_read.append(table)
        return table

    def tables(self, key: str, default: Any = MISSING) -> list[Table]:
        """A list of tables, in the order of the file."""
        rows = self.value(key, list, default)
        if not all(isinstance(row, dict) for row in rows):
            raise self.wrong(key, "must be tables")
        found = [Table(row, f"{self.where(key)}[{n}]") for n, row in enumerate(rows, start=1)]
        self.tables_read += found
        return found

    def named_tables(self) -> dict[str, Table]:
        """Every key of this table as a table of its own."""
        return {key: self.table(key) for key in self.values}

    def done(self) -> None:
        """Refuse keys that mean nothing, here and in every table that was read."""
        unknown = sorted(self.values.keys() - self.asked)
        if unknown:
            raise self.wrong(unknown[0], "is not known here")
        for table in self.tables_read:
            table.done()


def read(path: Path) -> Table:
    """The file as a table; ConfigurationError when it is no TOML."""
    try:
        return Table(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as fault:
        raise ConfigurationError(str(fault.strerror)) from None
    except ValueError as fault:
        raise ConfigurationError(str(fault)) from None

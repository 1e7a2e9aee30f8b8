"""From a document to checked entries, with every fault that can be seen without the database."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from plans.configuration.documents import Document, Place
from plans.configuration.faults import Fault
from plans.configuration.kinds import NESTED, Kind, known


@dataclass(frozen=True, slots=True)
class Entry:
    """One row as the file wants it: converted values, without its name and nested rows."""

    kind: Kind
    name: str
    place: Place
    values: dict[str, Any] = field(repr=False)
    nested: tuple[Entry, ...] = ()


class Reading:
    """One walk over a document; `entries` by kind, `faults` in the order of the file."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.faults: list[Fault] = []
        self.entries: dict[str, list[Entry]] = {}
        tables = [kind.table for kind in known()]
        for key in document.value:
            if key not in tables:
                self.fault((key,), f"unknown table {_unknown(key, tables)}")
        for kind in known():
            table = document.value.get(kind.table, [])
            self.entries[kind.table] = list(self._rows(kind, table, (kind.table,)))

    def fault(self, place: Place, detail: str) -> None:
        self.faults.append(Fault(self.document.line(place), detail))

    def _rows(self, kind: Kind, table: Any, place: Place) -> Iterable[Entry]:
        if not isinstance(table, list) or not all(isinstance(row, dict) for row in table):
            self.fault(place, f"{kind.table} must be written as [[{'.'.join(_names(place))}]]")
            return
        seen: set[str] = set()
        for index, row in enumerate(table):
            entry = self._entry(kind, row, (*place, index))
            if entry is not None and entry.name in seen:
                self.fault(entry.place, f'{kind.noun} "{entry.name}" stands here twice')
            elif entry is not None:
                seen.add(entry.name)
                yield entry

    def _entry(self, kind: Kind, row: dict[str, Any], place: Place) -> Entry | None:
        inner = NESTED.get(kind.table)
        label = self._label(kind, row)
        values: dict[str, Any] = {}
        for key, value in row.items():
            if inner is not None and key == inner.table:
                continue
            if key in kind.keys:
                self._convert(kind, label, values, key, value, (*place, key))
            else:
                keys = [*kind.keys, *([inner.table] if inner else [])]
                self.fault((*place, key), f"{label}: unknown key {_unknown(key, keys)}")
        nested: tuple[Entry, ...] = ()
        if inner is not None:
            nested = tuple(self._rows(inner, row.get(inner.table, []), (*place, inner.table)))
        if kind.named_by not in row:
            self.fault(place, f"every {kind.noun} needs a {kind.named_by}")
        name = values.pop(kind.named_by, None)
        return Entry(kind, name, place, values, nested) if name is not None else None

    def _convert(
        self, kind: Kind, label: str, into: dict[str, Any], key: str, value: Any, place: Place
    ) -> None:
        try:
            into[key] = kind.keys[key](value, self.document.folder)
        except ValueError as error:
            self.fault(place, f"{label}: {key} {error}")

    def _label(self, kind: Kind, row: dict[str, Any]) -> str:
        """The row's name as far as it is one that can be shown."""
        try:
            name = kind.keys[kind.named_by](row.get(kind.named_by), self.document.folder)
        except ValueError:
            return kind.noun
        return f'{kind.noun} "{name}"'


def _names(place: Place) -> list[str]:
    return [part for part in place if isinstance(part, str)]


def _unknown(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    return f'"{key}"' + (f'; did you mean "{near[0]}"?' if near else "")

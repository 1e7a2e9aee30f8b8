"""Faults that only show against the stored rows, collected so that one run names them all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from plans.configuration.documents import Document
from plans.configuration.entries import Entry
from plans.configuration.faults import Fault


class Refused:
    """The faults met so far; anything in it means that nothing is stored."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.faults: list[Fault] = []

    def add(self, entry: Entry, detail: str, key: str = "") -> None:
        """A fault of this entry, at the line of the key where one is named."""
        place = (*entry.place, key) if key else entry.place
        line = self.document.line(place)
        self.faults.append(Fault(line, f'{entry.kind.noun} "{entry.name}": {detail}'))

    @contextmanager
    def at(self, entry: Entry) -> Iterator[None]:
        """Take a ValueError as a fault of this entry; its first word may be the key's name."""
        try:
            yield
        except ValueError as error:
            first = str(error).partition(" ")[0]
            self.add(entry, str(error), first if first in entry.values else "")


def require(entry: Entry, refused: Refused) -> bool:
    """Whether a new row has all it needs."""
    missing = [key for key in entry.kind.required if key not in entry.values]
    for key in missing:
        refused.add(entry, f"a new {entry.kind.noun} needs {key}")
    return not missing

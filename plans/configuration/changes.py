"""What an application of a configuration changed, for the terminal and for the trail."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import models

from audit.actions import Action
from audit.actors import Actor
from audit.recording import Subject, record
from audit.safe_text import visible

# A schema may be large; the trail and the terminal name it without repeating it.
_SHOWN_LIMIT: Final = 500


@dataclass(frozen=True, slots=True)
class KeyChange:
    """One key: its values before and after, or for a secret only the words of what happened."""

    key: str
    before: Any = None
    after: Any = None
    words: str = ""

    def line(self) -> str:
        if self.words:
            return f"{self.key}: {self.words}"
        before = "" if self.before is None else f"{_shown(self.before)} → "
        return f"{self.key}: {before}{_shown(self.after)}"

    def details(self) -> dict[str, Any]:
        if self.words:
            return {"key": self.key, "words": self.words}
        return {"key": self.key, "from": _kept(self.before), "to": _kept(self.after)}


@dataclass(frozen=True, slots=True)
class Change:
    """One row that was made or changed."""

    noun: str
    name: str
    created: bool
    keys: tuple[KeyChange, ...]
    subject: Subject = field(default_factory=Subject)

    def lines(self) -> Iterator[str]:
        """For the terminal: `+` a new row, `~` a changed one, its keys below it."""
        yield f"{'+' if self.created else '~'} {self.noun} {self.name}"
        for key in self.keys:
            yield f"    {key.line()}"

    def record(self, actor: Actor) -> None:
        """The event, in the transaction of the change (L-1)."""
        details = {
            "kind": self.noun,
            "name": self.name,
            "created": self.created,
            "changed": [key.details() for key in self.keys],
        }
        record(Action.CONFIG_APPLIED, actor, self.subject, details)


def assign(row: models.Model, values: Mapping[str, Any]) -> list[KeyChange]:
    """Set the attributes that differ; nothing is saved.

    Of a new row every given key is told, so that a check shows what the file says of it, also
    where that is the default.
    """
    new = row.pk is None
    changed = []
    for key, value in values.items():
        before = getattr(row, key)
        if new or before != value:
            setattr(row, key, value)
            changed.append(KeyChange(key, None if new else before, value))
    return changed


def _kept(value: Any) -> Any:
    return value if len(json.dumps(value)) <= _SHOWN_LIMIT else "…"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return visible(text) if len(text) <= _SHOWN_LIMIT else "…"

"""What is said beside a plan: people's comments, and the evidence that its agent found later."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

from django.utils.translation import gettext as _

from approvals import forms, rendering
from approvals.papers import Papers
from approvals.rendering import Shown
from plans.models import Evidence
from plans.status import Status

_LOOK: Final = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})\.([0-9]{1,15})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Look:
    """What an open page has of it, and since when that page is open; it says so when it asks."""

    comments: int
    evidence: int
    opened: datetime

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Of the hidden field; None for what no page of ours says. It decides nothing."""
        found = _LOOK.fullmatch(text)
        if found is None:
            return None
        comments, evidence, milliseconds = map(int, found.groups())
        try:
            opened = datetime.fromtimestamp(milliseconds / 1000, UTC)
        except (OverflowError, ValueError):
            return None
        return cls(comments, evidence, opened)

    def __str__(self) -> str:
        return f"{self.comments}.{self.evidence}.{int(self.opened.timestamp() * 1000)}"


@dataclass(frozen=True, slots=True)
class Found:
    """One piece of evidence: the agent's words, and where it says they come from.

    `new`: in words, since when; empty for what came with the plan, and once it is closed.
    """

    label: str
    text: str
    url: Shown | None
    at: datetime
    new: str


@dataclass(frozen=True, slots=True)
class Said:
    """One comment."""

    name: str
    text: str
    at: datetime


@dataclass(frozen=True)
class Conversation:
    """Texts for the templates, which escape them."""

    papers: Papers
    opened: datetime

    @property
    def comments(self) -> list[Said]:
        rows = self.papers.comments
        return [
            Said(
                rendering.prose(row.person.get_username()),
                rendering.prose(row.text),
                row.written_at,
            )
            for row in rows
        ]

    @property
    def evidence(self) -> list[Found]:
        return [
            Found(
                rendering.prose(row.label),
                rendering.prose(row.text),
                rendering.url(row.url) if row.url else None,
                row.added_at,
                self._new(row),
            )
            for row in self.papers.evidence_rows
        ]

    def _new(self, row: Evidence) -> str:
        plan = self.papers.plan
        if plan.is_terminal:
            return ""
        if row.added_at > self.opened:
            return _("new since you opened this page")
        # Since then people decide on it, in this round.
        if plan.status == Status.PENDING and row.added_at > plan.status_at:
            if plan.round > 1:
                return _("new since it waits again")
            return _("new since it began to wait")
        return ""

    @property
    def look(self) -> Look:
        return Look(len(self.papers.comments), len(self.papers.evidence_rows), self.opened)

    @property
    def news(self) -> list[tuple[str, str]]:
        """What has come since the page was opened: how much, and where on the page it stands."""
        late = sum(row.added_at > self.opened for row in self.papers.evidence_rows)
        others = (row for row in self.papers.comments if row.person_id != self.papers.person.pk)
        said = sum(row.written_at > self.opened for row in others)
        told = [(late, _("piece of evidence"), _("pieces of evidence"), "evidence")]
        told += [(said, "comment", "comments", "conversation")]
        return [(f"{n} {one if n == 1 else many}", at) for n, one, many, at in told if n]


def opened(query: Mapping[str, str], form: Mapping[str, str], now: datetime) -> datetime:
    """Since when the page is open that asks again, or whose form was posted; else since now."""
    look = Look.read(query.get("talk", ""))
    return min(now, (look.opened if look else forms.opened_at(form.get("shown_at", ""))) or now)

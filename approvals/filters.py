"""What the review list shows, as an object: the query string in, querysets narrowed."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy

from plans.models import Operation

LONGEST_SEARCH = 200
_LIKENESS = re.compile("[0-9a-f]{32}")


class Tab(TextChoices):
    NEEDS_ME = "needs_me", gettext_lazy("Needs me")
    OTHERS = "others", gettext_lazy("Others")
    REPLANNING = "replanning", gettext_lazy("Re-planning")
    DONE = "done", gettext_lazy("Done")


class Part(TextChoices):
    """The stretches of a list, in their order; a page may end in one and go on in the next."""

    URGENT = "urgent"
    REST = "rest"
    PARKED = "parked"


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page ended: the last row's place, and the instant that said what is urgent."""

    part: Part
    as_of: datetime
    rank: int
    at: datetime
    pk: int

    def encode(self) -> str:
        fields = [self.part.value, self.as_of.isoformat(), self.rank, self.at.isoformat(), self.pk]
        return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> Self | None:
        """None for anything that `encode` did not make: the list then starts at its top."""
        try:
            padded = text[:400].encode() + b"=" * (-len(text[:400]) % 4)
            part, as_of, rank, at, pk = json.loads(base64.urlsafe_b64decode(padded))
            instants = datetime.fromisoformat(as_of), datetime.fromisoformat(at)
            if any(instant.tzinfo is None for instant in instants):
                return None
            cursor = cls(Part(part), instants[0], int(rank), instants[1], int(pk))
        except (ValueError, TypeError, OverflowError, RecursionError, binascii.Error):
            return None
        fits = 0 <= cursor.rank < 2**15 and 0 <= cursor.pk < 2**63
        return cursor if fits else None

    @property
    def place(self) -> dict[str, Any]:
        """Its row's place in the order risk, decide_by, id."""
        return {"rank": self.rank, "at": self.at, "pk": self.pk}


@dataclass(frozen=True, slots=True)
class Filters:
    """`/review/?tab=&q=&target=&operation=&risk=&agent=&open=&after=`; unknown words are left out.

    `open`: the likeness of plans that stand in one row, which is to show each of them.
    """

    tab: Tab = Tab.NEEDS_ME
    q: str = ""
    target: str = ""
    operation: str = ""
    risk: str = ""
    agent: str = ""
    open: str = ""
    after: Cursor | None = None

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Self:
        def word(name: str) -> str:
            return query.get(name, "").replace("\0", "").strip()[:LONGEST_SEARCH]

        return cls(
            tab=Tab(word("tab")) if word("tab") in Tab else Tab.NEEDS_ME,
            q=word("q"),
            target=word("target"),
            operation=word("operation"),
            risk=word("risk") if word("risk") in Operation.Risk else "",
            agent=word("agent"),
            open=word("open") if _LIKENESS.fullmatch(word("open")) else "",
            after=Cursor.decode(word("after") if len(word("after")) < 200 else ""),
        )

    @property
    def narrows(self) -> int:
        """How many of the select boxes are set: the page says so where they are folded away."""
        return sum(bool(word) for word in (self.target, self.operation, self.risk, self.agent))

    @property
    def active(self) -> bool:
        return bool(self.q or self.narrows)

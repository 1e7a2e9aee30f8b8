"""What the review list shows, as an object: the query string in, querysets narrowed."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from django.db.models import Q, QuerySet, TextChoices, TextField
from django.db.models.functions import Cast

from plans.models import Operation, Replan
from plans.models.plans import PlanQuerySet

LONGEST_SEARCH = 200
# `changes` is the text of the actions: objects, fields and values.
SEARCHED = ("plan_id", "title", "agent__name", "task_id", "changes", "summary", "reason")
SEARCHED_OF_INTENT = ("agent__name", "task_id", "summary", "reason")


class Tab(TextChoices):
    NEEDS_ME = "needs_me", "Needs me"
    OTHERS = "others", "Others"
    REPLANNING = "replanning", "Re-planning"
    DONE = "done", "Done"


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

    def beyond(self) -> Q:
        """Rows after this one in the order risk, decide_by, id."""
        tie = Q(decide_by__gt=self.at) | Q(decide_by=self.at, pk__gt=self.pk)
        return Q(risk_rank__gte=self.rank) & (Q(risk_rank__gt=self.rank) | tie)


@dataclass(frozen=True, slots=True)
class Filters:
    """`/review/?tab=&q=&target=&operation=&risk=&agent=&after=`; unknown words are left out."""

    tab: Tab = Tab.NEEDS_ME
    q: str = ""
    target: str = ""
    operation: str = ""
    risk: str = ""
    agent: str = ""
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
            after=Cursor.decode(word("after") if len(word("after")) < 200 else ""),
        )

    @property
    def narrows(self) -> int:
        """How many of the select boxes are set: the page says so where they are folded away."""
        return sum(bool(word) for word in (self.target, self.operation, self.risk, self.agent))

    @property
    def active(self) -> bool:
        return bool(self.q or self.narrows)

    def plans(self, plans: PlanQuerySet) -> PlanQuerySet:
        """The plans that match every filter; search looks at IDs, names, objects and texts."""
        plans = plans.filter(self._named(risk="risk"))
        if not self.q:
            return plans
        return plans.alias(changes=Cast("actions", TextField())).filter(self._says(*SEARCHED))

    def replans(self, replans: QuerySet[Replan]) -> QuerySet[Replan]:
        """Re-plans match by their dead plan and by their intent: a first dry run has no plan."""
        replans = replans.filter(self._named("intent__", risk="intent__operation__risk"))
        if not self.q:
            return replans
        of_plan = [f"plan__{field}" for field in SEARCHED if field != "changes"]
        of_intent = [f"intent__{field}" for field in SEARCHED_OF_INTENT]
        changes = Cast("plan__actions", TextField())
        found = replans.alias(changes=changes)
        return found.filter(self._says("changes", *of_plan, *of_intent))

    def _named(self, prefix: str = "", *, risk: str) -> Q:
        wanted = {
            f"{prefix}target__name": self.target,
            f"{prefix}operation__name": self.operation,
            f"{prefix}agent__name": self.agent,
            risk: self.risk,
        }
        return Q(**{field: word for field, word in wanted.items() if word})

    def _says(self, *fields: str) -> Q:
        return Q.create([(f"{field}__icontains", self.q) for field in fields], connector=Q.OR)

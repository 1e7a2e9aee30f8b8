"""Filters as conditions with slots: a statement depends on which are set, not on their words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

from django.contrib.postgres.fields import ArrayField
from django.db.models import BigIntegerField, F, Q, QuerySet, TextField

from approvals.filters import Filters
from audit.statements import Slot
from plans.models import Agent, Replan
from plans.models.plans import PlanQuerySet
from plans.models.words import (
    IsOneOf,
    Reads,
    Say,
    Text,
    Words,
    patterns_of,
    searches_of,
    split,
    text_of,
    text_of_plan,
)

NAMED: Final = ("target", "operation", "agent", "risk")
_COLUMNS: Final = {"target": "target__name", "operation": "operation__name", "agent": "agent__name"}
_KEYS: Final = ArrayField(BigIntegerField())
# A search without a word finds nothing; Django would not even make a statement of that.
_NOBODY: Final = -1


@dataclass(frozen=True, slots=True)
class Shape:
    """The filters that are set, and for each word of the search whether agents have such a name.

    None: there is no search. PostgreSQL must not be asked for agents where there are none: it keeps
    one plan for a statement, and would expect many.
    """

    names: tuple[str, ...] = ()
    words: tuple[bool, ...] | None = None

    def plans(self, plans: PlanQuerySet, *, over: bool = False) -> PlanQuerySet:
        """The plans that match every filter; `over`: all of them are at their end, and indexed."""
        text = text_of_plan()
        words = Words(text) if over else None
        return plans.filter(self._named("", risk="risk"), self._said(text, words, "agent_id"))

    def replans(self, replans: QuerySet[Replan]) -> QuerySet[Replan]:
        """Re-plans match by their dead plan and by their intent: a first dry run has no plan."""
        of_plan = ("plan__plan_id", "plan__title")
        of_intent = ("intent__task_id", "intent__summary", "intent__reason")
        text = text_of(*of_plan, *of_intent, actions="plan__actions")
        return replans.filter(
            self._named("intent__", risk="intent__operation__risk"),
            self._said(text, None, "intent__agent_id"),
        )

    def _named(self, prefix: str, *, risk: str) -> Q:
        columns = {name: f"{prefix}{column}" for name, column in _COLUMNS.items()} | {"risk": risk}
        return Q(**{columns[name]: Slot(name, TextField()) for name in self.names})

    def _said(self, text: Text, words: Words | None, agent: str) -> Q:
        """Every word of the search is one of the row's words, or of its agent's name."""
        if self.words == ():
            return Q(pk=_NOBODY)
        every = Q()
        for number, agents in enumerate(self.words or ()):
            search, pattern = (Slot(f"{name}{number}", TextField()) for name in ("word", "like"))
            said = Q(Reads(text, pattern) if words is None else Say(words, search))
            if agents:
                said |= Q(IsOneOf(F(agent), Slot(f"agents{number}", _KEYS)))
            every &= said
        return every


@dataclass(frozen=True, slots=True)
class Narrowing:
    """A shape with the values of its slots."""

    shape: Shape
    values: dict[str, Any]

    @classmethod
    def by(cls, filters: Filters) -> Self:
        """One query where something is searched for: which agents have a name like it."""
        named = {name: getattr(filters, name) for name in NAMED if getattr(filters, name)}
        if not filters.q:
            return cls(Shape(tuple(named)), named)
        values: dict[str, Any] = dict(named)
        searches = searches_of(filters.q)
        agents = _agents_like(split(filters.q)[: len(searches)])
        for name, each in (
            ("word", searches),
            ("like", patterns_of(filters.q)),
            ("agents", agents),
        ):
            values |= {f"{name}{number}": value for number, value in enumerate(each)}
        return cls(Shape(tuple(named), tuple(map(bool, agents))), values)


def _agents_like(words: list[str]) -> list[list[int]]:
    """For each word, the agents in whose name a word begins so."""
    maybe = Q.create([("name__icontains", word) for word in words], connector=Q.OR)
    agents = Agent.objects.filter(maybe).values_list("pk", "name") if words else ()
    names = [(pk, split(name)) for pk, name in agents]
    return [[pk for pk, name in names if any(w.startswith(word) for w in name)] for word in words]

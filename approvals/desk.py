"""How much waits for a person, and where they may go: one statement for a whole page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from django.contrib.auth.models import Group, User
from django.db.models import QuerySet

from approvals import queue
from approvals.access import Role
from approvals.filters import Tab
from approvals.narrowing import Narrowing, Shape
from approvals.queue import CAP, WHO
from audit.figures import Counts, Lines
from plans.models import Agent, Target

type Questions = dict[str, QuerySet[Any, Any]]


@dataclass(frozen=True, slots=True)
class Head:
    """What every page says at its top; numbers stop at CAP.

    `review`: what this person can decide now, or have planned again now (R-3).
    """

    review: int
    replans: int
    unresolved: int
    owner: bool
    roles: frozenset[str]


@dataclass(frozen=True, slots=True)
class Desk:
    """The head, the numbers on the tabs under the filters in force, and whether any target is
    this person's to see. Done has no number: it only grows."""

    head: Head
    tabs: dict[Tab, int]
    may_review: bool


def head(user: User) -> Head:
    return _read(_HEAD.of(person=user.pk))


def desk(user: User, narrowing: Narrowing) -> Desk:
    """Everything that the review page counts."""
    found = _desk(narrowing.shape).of(person=user.pk, **narrowing.values)
    tabs = {
        Tab.NEEDS_ME: found["listed"] + found["listed parked"],
        Tab.OTHERS: found["listed others"],
        Tab.REPLANNING: found["listed replans"],
    }
    return Desk(_read(found), tabs, bool(found["targets"]))


def _read(found: dict[str, int]) -> Head:
    return Head(
        review=found["needs_me"] + found["parked"],
        replans=found["replans"],
        unresolved=found["unresolved"],
        owner=bool(found["agents"]),
        roles=frozenset(role.value for role in Role if found[role.value]),
    )


def _asked_of_every_page() -> Questions:
    roles = {role.value: Group.objects.filter(user=WHO, name=role.value) for role in Role}
    waiting = {
        "needs_me": queue.needs_me(WHO),
        "parked": queue.parked(WHO),
        "replans": queue.replanning(WHO),
        "unresolved": queue.unresolved(WHO),
    }
    return _capped(waiting) | {"agents": Agent.objects.filter(owner=WHO)[:1]} | roles


def _asked_of_the_desk(shape: Shape) -> Questions:
    lists = {
        "listed": shape.plans(queue.needs_me(WHO)),
        "listed parked": shape.plans(queue.parked(WHO)),
        "listed others": shape.plans(queue.others(WHO)),
        "listed replans": shape.replans(queue.replanning(WHO)),
    }
    return _asked_of_every_page() | _capped(lists) | {"targets": queue.seen_targets(WHO)[:1]}


def _capped(rows: Questions) -> Questions:
    return {name: found.order_by()[:CAP] for name, found in rows.items()}


_HEAD: Final = Counts(_asked_of_every_page)


@lru_cache(maxsize=256)
def _desk(shape: Shape) -> Counts:
    return Counts(lambda: _asked_of_the_desk(shape))


def choices(user: User) -> dict[str, list[str]]:
    """What the select boxes offer: names of what this person can see, and of nothing else."""
    seen = _SEEN.all(person=user.pk)
    agents = queue.seen_agents(sorted({pk for pk, _, _ in seen}))
    return {
        "targets": list(dict.fromkeys(target for _, target, _ in seen)),
        "operations": sorted({operation for _, _, operation in seen if operation}),
        "agents": list(agents.values_list("name", flat=True)),
    }


def _seen() -> QuerySet[Target, Any]:
    names = queue.seen_targets(WHO).order_by("name", "operations__name")
    return names.values_list("pk", "name", "operations__name")


_SEEN: Final = Lines(_seen)

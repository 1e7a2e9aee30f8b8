"""Distinct people on the seats that groups offer: a person in two groups takes one (B-6).

Who sits where is a maximum matching, so nobody is counted out by an unlucky order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

# A seat for anybody who reviews the target.
ANYONE: Final = ""
type People = Mapping[int, frozenset[str]]
"""Who approved, in order, with the groups of this moment."""


def seated(seats: Sequence[str], people: People) -> dict[int, int]:
    """Person → number of a seat, for as many people as there can be; the earlier ones first."""
    taken: dict[int, int] = {}
    for person in people:
        _seat(person, seats, people, taken, set())
    return {person: seat for seat, person in taken.items()}


def counts(seats: Sequence[str], people: People, groups: frozenset[str]) -> bool:
    """Whether one more person of these groups would bring the quorum nearer."""
    newcomer = min(people, default=0) - 1
    more = {**people, newcomer: groups}
    return len(seated(seats, more)) > len(seated(seats, people))


def still_open(seats: Sequence[str], people: People) -> list[str]:
    """The groups of which one more person would count."""
    return [group for group in dict.fromkeys(seats) if counts(seats, people, frozenset({group}))]


def fits(group: str, groups: Iterable[str]) -> bool:
    return group == ANYONE or group in groups


def _seat(
    person: int, seats: Sequence[str], people: People, taken: dict[int, int], tried: set[int]
) -> bool:
    """Find a seat, moving others along where that makes room (Kuhn)."""
    for number, group in enumerate(seats):
        if number in tried or not fits(group, people[person]):
            continue
        tried.add(number)
        if number not in taken or _seat(taken[number], seats, people, taken, tried):
            taken[number] = person
            return True
    return False

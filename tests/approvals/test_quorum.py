"""Distinct people on seats, whatever the order in which they come (B-6)."""

from __future__ import annotations

from itertools import combinations, permutations, product

import pytest

from approvals.policies.quorum import ANYONE, counts, seated, still_open

R, L, F = "reviewers", "leads", "finance"


def people(*groups: str) -> dict[int, frozenset[str]]:
    """`people("R", "RL")`: person 1 reviews, person 2 reviews and leads."""
    names = {"R": R, "L": L, "F": F}
    return {n: frozenset(names[letter] for letter in each) for n, each in enumerate(groups, 1)}


@pytest.mark.parametrize(
    ("seats", "groups", "given"),
    [
        ([ANYONE], [], 0),
        ([ANYONE], [""], 1),
        ([ANYONE, ANYONE], ["R"], 1),
        ([R, R], ["R", "R"], 2),
        ([R, R], ["RL"], 1),
        ([R, L], ["RL"], 1),
        ([R, L], ["RL", "R"], 2),
        ([R, L], ["R", "RL"], 2),
        ([R, L], ["R", "R"], 1),
        ([R, L, F], ["RLF", "RL", "R"], 3),
        ([R, L, F], ["RL", "RL", "RL"], 2),
        ([R, R, L], ["RL", "RL", "R"], 3),
        ([L], ["R"], 0),
    ],
)
def test_a_person_takes_one_seat(seats: list[str], groups: list[str], given: int) -> None:
    for order in permutations(people(*groups).items()):
        assert len(seated(seats, dict(order))) == given


def test_it_finds_the_most_that_any_seating_can() -> None:
    """Against trying every seating, for every small case."""
    kinds = ["", "R", "L", "RL", "RLF"]
    for seats in ([R, L], [R, R, L], [L, F, R]):
        for groups in product(kinds, repeat=3):
            crowd = people(*groups)
            assert len(seated(seats, crowd)) == _most(seats, crowd)


def _most(seats: list[str], crowd: dict[int, frozenset[str]]) -> int:
    for size in range(min(len(seats), len(crowd)), 0, -1):
        for sitting in combinations(crowd.values(), size):
            for chosen in permutations(seats, size):
                if all(seat in groups for groups, seat in zip(sitting, chosen, strict=True)):
                    return size
    return 0


def test_one_more_counts_only_where_a_seat_can_be_freed() -> None:
    assert counts([R, L], people("RL"), frozenset({R}))
    assert counts([R, L], people("RL"), frozenset({L}))
    assert not counts([R, L], people("R"), frozenset({R}))
    assert not counts([R], people("R"), frozenset({R, L}))
    assert not counts([R], people(), frozenset())


def test_it_names_the_groups_of_which_somebody_is_missing() -> None:
    assert still_open([R, L], people("RL")) == [R, L]
    assert still_open([R, L], people("R")) == [L]
    assert still_open([R, R, L], people("R")) == [R, L]
    assert still_open([R], people("R")) == []

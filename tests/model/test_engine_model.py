"""Every order of events, walked: applied at most once, never told wrong, always an end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plans.status import Status
from tests.model.engine_model import FINAL, Rules, World, following

NOT_APPLIED = frozenset({Status.CONFLICTED, Status.EXPIRED, Status.FAILED})
LIMIT = 100_000


def explore(rules: Rules) -> dict[World, set[World]]:
    """Every reachable state with the states one step away."""
    steps: dict[World, set[World]] = {}
    waiting = [World()]
    while waiting:
        world = waiting.pop()
        if world in steps:
            continue
        steps[world] = set(following(world, rules))
        waiting += [after for after in steps[world] if after not in steps]
        assert len(steps) <= LIMIT
    return steps


def applied_twice(world: World) -> bool:
    return world.applies > 1


def committed_without_effect(world: World) -> bool:
    return world.status == Status.COMMITTED and world.applies == 0


def denied_an_effect(world: World) -> bool:
    return world.status in NOT_APPLIED and world.applies > 0


INVARIANTS = (applied_twice, committed_without_effect, denied_an_effect)


@pytest.fixture(scope="module")
def states() -> dict[World, set[World]]:
    return explore(Rules())


def test_the_model_is_large_enough_to_mean_something(states: dict[World, set[World]]) -> None:
    assert len(states) > 1_000
    reached = {world.status for world in states}
    assert reached >= FINAL & {
        Status.COMMITTED,
        Status.CONFLICTED,
        Status.EXPIRED,
        Status.UNRESOLVED,
    }


@pytest.mark.parametrize("broken", INVARIANTS, ids=lambda check: check.__name__)
def test_no_order_of_events_breaks(
    broken: Callable[[World], bool], states: dict[World, set[World]]
) -> None:
    assert [world for world in states if broken(world)] == []


def test_every_state_can_still_come_to_an_end(states: dict[World, set[World]]) -> None:
    assert stuck(states) == set()


def stuck(states: dict[World, set[World]]) -> set[World]:
    """States from which no final one can be reached."""
    before: dict[World, set[World]] = {}
    for world, after in states.items():
        for one in after:
            before.setdefault(one, set()).add(world)
    alive = {world for world in states if world.status in FINAL}
    waiting = list(alive)
    while waiting:
        for world in before.get(waiting.pop(), set()) - alive:
            alive.add(world)
            waiting.append(world)
    return states.keys() - alive


@pytest.mark.parametrize(
    ("rules", "broken"),
    [
        (Rules(new_key_on_retry=True), applied_twice),
        (Rules(trust_any_success=True), committed_without_effect),
        (Rules(timeout_is_failure=True), denied_an_effect),
        (Rules(believe_late_refusals=True), denied_an_effect),
    ],
    ids=["new key", "any 2xx", "timeout is failure", "late refusals believed"],
)
def test_a_product_without_the_rule_is_caught(
    rules: Rules, broken: Callable[[World], bool]
) -> None:
    assert any(broken(world) for world in explore(rules))

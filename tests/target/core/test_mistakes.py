"""Mistakes of an owner, found early."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from countersign_target import Action, Credentials, Operation, State, Target
from tests.target.core.owner import UPDATE, Owner
from tests.target.crib import Crib, code


@pytest.mark.parametrize(
    "actions",
    [
        [UPDATE] * 21,
        [{"op": "update"}],
        [Action("update", "thing/1", "size", object(), 2)],
        [Action("update", "thing/1", "size", 2**60, 2)],
    ],
)
def test_a_plan_that_cannot_be_shown_is_no_plan(crib: Crib, owner: Owner, actions: Any) -> None:
    owner.actions = actions
    assert code(crib.dry_run()) == (500, "internal-error")


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        (None, "plan() returned NoneType, not a list of Actions, or Planned"),
        ("words", "plan() returned str, not a list"),
        ([{"op": "update"}], "plan() returned dict where an Action belongs"),
        ([UPDATE] * 21, "plan() returned 21 actions of 20 at most"),
    ],
)
def test_the_log_says_what_a_plan_has_to_be(
    crib: Crib, owner: Owner, actions: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    owner.actions = actions
    assert crib.dry_run().status == 500
    assert words in caplog.text


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda store, one: Credentials(app="short", agent="other-token"), "two different tokens"),
        (lambda store, one: Credentials(app="same-token", agent="same-token"), "two different"),
        (lambda store, one: Operation("a/b", one.plan, one.apply), "address"),
        (lambda store, one: Operation("plans", one.plan, one.apply), "taken"),
        (lambda store, one: Crib(store, "?", one, one), "two operations"),
        (lambda store, one: Crib(store, "?", one, key_retention_seconds=60), "keys are kept"),
        (lambda store, one: Crib(store, "?", one, plan_retention_seconds=60), "plans are kept"),
    ],
)
def test_a_target_that_cannot_work_is_not_built(
    store: Any, owner: Owner, build: Callable[[Any, Operation], Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        build(store, owner.operation())


def test_a_coroutine_is_no_plan(owner: Owner) -> None:
    async def later(inputs: dict[str, Any], state: State) -> Any:
        return [UPDATE]

    with pytest.raises(TypeError, match="no async def"):
        Operation("change", later, owner.apply)  # type: ignore[arg-type]


def test_credentials_are_never_shown() -> None:
    shown = repr(Credentials(app="app-token-secret", agent="agent-token-secret"))
    assert "secret" not in shown


def test_an_owner_may_know_callers_by_other_means(store: Any, owner: Owner) -> None:
    class Callers:
        def principal(self, authorization: str | None) -> str | None:
            return {"Key app": "app", "Key agent": "agent"}.get(authorization or "")

    target = Target("crib", store, Callers(), [owner.operation()])
    crib = Crib(store, "?", owner.operation())
    crib.target = target
    assert crib.ask("POST", "/change/dry_run", {}, authorization="Key agent").status == 200
    assert crib.ask("POST", "/change/dry_run", {}).status == 401

"""What an owner does in its transaction, and what callers then hear."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from psycopg_pool import ConnectionPool

from countersign_target import (
    Change,
    Conflict,
    Later,
    Operation,
    Plan,
    Problem,
    SqliteStore,
    State,
    StoreAway,
)
from countersign_target.postgresql import PostgresStore
from tests.target.core.owner import UPDATE, Owner, effects
from tests.target.crib import Crib, code


@pytest.mark.parametrize(
    ("fails", "heard", "status"),
    [
        (Problem(422, "closed", "The books are closed."), (422, "closed"), "not_applied"),
        (Conflict([Change("size", 1, 3, "thing/1")]), (409, "state-changed"), "not_applied"),
        (Conflict(), (409, "state-changed"), "not_applied"),
        (Problem(410, "expired", "Too late."), (410, "expired"), "expired"),
        (Later("Busy.", 7), (503, "try-again"), "open"),
        (Problem(500, "broken", "Broken."), (500, "broken"), "open"),
        (RuntimeError("a fault of the owner's"), (500, "internal-error"), "open"),
    ],
)
def test_a_refusal_in_apply_leaves_nothing_behind(
    crib: Crib, owner: Owner, fails: Exception, heard: tuple[int, str], status: str
) -> None:
    plan = crib.plan()
    owner.fails = fails
    first = crib.commit(plan, plan["plan_id"])
    assert code(first) == heard
    assert (crib.status(plan), effects(crib)) == (status, 0)
    owner.fails = None
    again = crib.commit(plan, plan["plan_id"])
    if status == "open":
        assert (again.status, effects(crib)) == (200, 1)
    else:
        assert (again.text, again.headers["Idempotent-Replayed"]) == (first.text, "true")
        assert code(crib.commit(plan)) == heard


def test_a_fault_is_logged_without_the_token(
    crib: Crib, owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    plan = crib.plan()
    owner.fails = RuntimeError("a fault of the owner's")
    with caplog.at_level(logging.ERROR):
        answer = crib.commit(plan)
    assert "a fault of the owner's" in caplog.text
    assert plan["plan_token"] not in caplog.text + answer.text + repr(owner.plans)


@pytest.mark.parametrize("how", ["commit", "rollback", "__exit__"])
def test_an_owner_cannot_end_the_transaction(crib: Crib, owner: Owner, how: str) -> None:
    def apply(plan: Plan) -> Any:
        owner.apply(plan)
        getattr(plan.connection, how)(*([None] * 3 if how == "__exit__" else []))
        return {}

    hasty = Crib(crib.store, crib.mark, Operation("change", owner.plan, apply))
    plan = hasty.plan()
    assert hasty.commit(plan).status in (500, 503)
    assert (hasty.status(plan), effects(crib)) == ("open", 0)


def test_a_pool_in_autocommit_mode_is_one_transaction_too(
    new_store: Callable[[str], str], owner: Owner
) -> None:
    address = new_store("postgresql")
    with ConnectionPool(address, kwargs={"autocommit": True}, min_size=1) as pool:
        crib = Crib(PostgresStore(pool), "%s", owner.operation())
        crib.run("CREATE TABLE effects (one integer)")
        plan, owner.fails = crib.plan(), RuntimeError("a fault of the owner's")
        assert crib.commit(plan).status == 500
        assert (crib.status(plan), effects(crib)) == ("open", 0)


@pytest.mark.parametrize("result", [None, {"cents": 2**60}, {"a": float("nan")}, {"a": object()}])
def test_a_result_is_json_that_every_reader_agrees_on(
    crib: Crib, owner: Owner, result: Any
) -> None:
    owner.result = result
    plan = crib.plan()
    assert crib.commit(plan).status == 500
    assert (crib.status(plan), effects(crib)) == ("open", 0)


def test_a_store_that_is_away_is_told(crib: Crib, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> Any:
        raise StoreAway("gone")

    monkeypatch.setattr(crib.target, "store", type("Away", (), {"transaction": away}))
    answer = crib.dry_run()
    assert (code(answer), answer.headers["Retry-After"]) == ((503, "store-away"), "1")


def test_a_file_that_stays_locked_is_away(tmp_path: Path, owner: Owner) -> None:
    store = SqliteStore(tmp_path / "file", busy_seconds=0.1)
    crib = Crib(store, "?", owner.operation())
    with store.transaction():
        assert code(crib.dry_run()) == (503, "store-away")
    assert crib.dry_run().status == 200


def test_a_trial_leaves_nothing(crib: Crib, owner: Owner) -> None:
    def plan_by_doing(inputs: dict[str, Any], state: State) -> Any:
        with state.trial():
            state.connection.cursor().execute("INSERT INTO effects VALUES (2)")
        return [UPDATE]

    doing = Crib(crib.store, crib.mark, Operation("change", plan_by_doing, owner.apply))
    plan = doing.plan()
    assert effects(crib) == 0
    assert (doing.commit(plan).status, effects(crib)) == (200, 1)


def test_what_a_plan_writes_in_a_dry_run_is_undone(crib: Crib, owner: Owner) -> None:
    def plan_that_writes(inputs: dict[str, Any], state: State) -> Any:
        state.connection.cursor().execute("INSERT INTO effects VALUES (2)")
        with state.trial():
            state.connection.cursor().execute("INSERT INTO effects VALUES (3)")
        return [UPDATE]

    writing = Crib(crib.store, crib.mark, Operation("change", plan_that_writes, owner.apply))
    plan = writing.plan()
    assert (plan["actions"], effects(crib)) == ([UPDATE.body()], 0)

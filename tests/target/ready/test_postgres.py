"""SQL as a target by configuration alone, on a real PostgreSQL."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from countersign_target.ready.postgres.config import Covered
from countersign_target.ready.postgres.rows import Row
from tests.target.ready.conftest import start_sql_target
from tests.target.ready.processes import Accounts, Ready


def changes(plan: dict[str, Any]) -> list[tuple[str, ...]]:
    """op, row, column, from, to of each action."""
    return [
        tuple(str(action[name]) for name in ("op", "target", "field", "from", "to"))
        for action in plan["actions"]
    ]


def test_a_dry_run_shows_row_and_column_and_leaves_nothing(
    sql_target: Ready, accounts: Accounts
) -> None:
    number = accounts.new()
    plan = sql_target.doing("extend_trial").plan(account_id=number, days=14)
    assert plan["actions"] == [
        {
            "op": "update",
            "target": f"account/{number}",
            "field": "trial_ends",
            "from": "2026-12-01",
            "to": "2026-12-15",
        }
    ]
    assert plan["covers"] == [f"account/{number}"]
    assert accounts.writes(number) == 0


def test_a_commit_is_carried_out_once_with_its_key(sql_target: Ready, accounts: Accounts) -> None:
    number = accounts.new(seats=2)
    plan = sql_target.doing("close_account").plan(account_id=number)
    account = f"account/{number}"
    assert [change[:3] for change in changes(plan)] == [
        ("update", account, "tier"),
        ("update", account, "closed_at"),
        ("remove", f"seat/{number},1", "person"),
        ("remove", f"seat/{number},2", "person"),
    ]
    answer = sql_target.commit(plan, "idem_closed_1")
    assert answer.status_code == 200, answer.text
    written = answer.json()["result"]["changed"]
    # The moment of the dry run is what was approved, and what was written.
    assert written[account]["closed_at"] == plan["actions"][1]["to"]
    assert accounts.now(number)["tier"] == "closed"
    assert accounts.run("SELECT count(*) AS n FROM seats WHERE account_id = %s", number)["n"] == 0
    again = sql_target.commit(plan, "idem_closed_1")
    assert (again.json(), again.headers["Idempotent-Replayed"]) == (answer.json(), "true")
    assert sql_target.commit(plan).json()["code"] == "plan-already-applied"
    assert accounts.writes(number) == 1


def test_a_row_that_comes_is_shown_from_nothing(sql_target: Ready, accounts: Accounts) -> None:
    number = accounts.new()
    plan = sql_target.doing("seat").plan(account_id=number, holder="Bo'; DROP TABLE seats; --")
    assert changes(plan) == [
        ("add", f"seat/{number},7", "person", "None", "Bo'; DROP TABLE seats; --")
    ]
    assert sql_target.commit(plan).status_code == 200
    row = accounts.run("SELECT person FROM seats WHERE account_id = %s", number)
    assert row["person"] == "Bo'; DROP TABLE seats; --"


def test_a_world_that_moved_is_a_conflict_that_names_row_and_column(
    sql_target: Ready, accounts: Accounts
) -> None:
    number = accounts.new()
    plan = sql_target.doing("extend_trial").plan(account_id=number, days=14)
    accounts.run(
        "UPDATE accounts SET credit = 7.25, visits = 3, note = 'unseen' WHERE id = %s", number
    )
    answer = sql_target.commit(plan)
    assert answer.status_code == 409
    name = f"account/{number}"
    assert answer.json()["changed"] == [
        {"path": "credit", "target": name, "planned": "10.50", "current": "7.25"},
        {"path": "visits", "target": name, "planned": "9007199254740993", "current": 3},
    ]
    assert sql_target.read(plan)["status"] == "not_applied"
    assert accounts.now(number)["trial_ends"].isoformat() == "2026-12-01"


def test_columns_that_the_plan_does_not_cover_may_move(
    sql_target: Ready, accounts: Accounts
) -> None:
    number = accounts.new()
    plan = sql_target.doing("extend_trial").plan(account_id=number, days=1)
    accounts.run("UPDATE accounts SET note = 'called twice' WHERE id = %s", number)
    assert sql_target.commit(plan).status_code == 200
    assert accounts.now(number)["note"] == "called twice"


def test_a_row_that_came_or_went_is_a_conflict(sql_target: Ready, accounts: Accounts) -> None:
    number = accounts.new(seats=1)
    plan = sql_target.doing("close_account").plan(account_id=number)
    accounts.run("INSERT INTO seats VALUES (%s, 3, 'Eve')", number)
    changed = sql_target.commit(plan).json()["changed"]
    assert changed == [
        {"path": "person", "target": f"seat/{number},3", "planned": None, "current": "Eve"}
    ]
    plan = sql_target.plan(account_id=number)
    accounts.run("DELETE FROM seats WHERE account_id = %s", number)
    changed = sql_target.commit(plan).json()["changed"]
    assert [change["current"] for change in changed] == [None, None]


@pytest.mark.parametrize(
    ("operation", "inputs", "code", "words"),
    [
        ("extend_trial", {"account_id": 0}, "nothing-to-change", ""),
        ("extend_trial", {"days": 91}, "invalid-request", ""),
        ("extend_trial", {"days": "1; DROP TABLE accounts"}, "invalid-request", ""),
        ("everybody", {}, "touches-more-than-covered", "rows of public.accounts; 1 are covered"),
        ("unlogged", {"days": 1}, "touches-more-than-covered", "1 rows of public.account_log"),
        ("neighbour", {"days": 1}, "touches-more-than-covered", "1 rows of public.seats"),
        ("unseen", {}, "changes-what-is-not-shown", "note would change"),
        ("take_credit", {}, "refused-by-the-database", "accounts_credit_check"),
        ("rename", {"holder": "Somebody"}, "refused-by-the-database", "one_holder"),
        ("two", {}, "sql-not-usable", "multiple commands"),
        ("bare", {}, "sql-not-usable", "multiple commands"),
        ("broken", {}, "sql-not-usable", '"nothing"'),
    ],
)
def test_it_refuses_what_cannot_become_a_plan(
    sql_target: Ready,
    accounts: Accounts,
    operation: str,
    inputs: dict[str, Any],
    code: str,
    words: str,
) -> None:
    accounts.run("INSERT INTO accounts (holder) VALUES ('Somebody') ON CONFLICT DO NOTHING")
    number = accounts.new(seats=1)
    accounts.new()
    given = {"account_id": number, **inputs}
    if not given["account_id"]:
        given["account_id"] = 10**9
    answer = sql_target.doing(operation).dry_run(**given)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert words in answer.json()["detail"]
    assert accounts.writes(number) == 0


def test_rows_are_named_so_that_no_two_share_a_name() -> None:
    key = ("a", "b")
    covered = Covered("public.t", "row", key, ("c",), (), "true", 1)
    pairs = [("x,y", "z"), ("x", "y,z"), ("x y", "\u202ez"), ("x/y", "%2C")]
    rows = [Row(covered, {"a": a, "b": b, "c": 1}, "1") for a, b in pairs]
    names = ["row/x%2Cy,z", "row/x,y%2Cz", "row/x%20y,%E2%80%AEz", "row/x%2Fy,%252C"]
    assert [row.name for row in rows] == names


def test_a_statement_that_takes_too_long_is_for_later(
    sql_target: Ready, accounts: Accounts
) -> None:
    answer = sql_target.doing("endless").dry_run(account_id=accounts.new())
    assert (answer.status_code, answer.json()["code"]) == (503, "try-again")


def test_what_would_be_written_otherwise_than_approved_is_not_written(
    sql_target: Ready, accounts: Accounts
) -> None:
    number = accounts.new()
    plan = sql_target.doing("clocked").plan(account_id=number)
    answer = sql_target.commit(plan)
    assert answer.status_code == 409
    (change,) = answer.json()["changed"]
    assert (change["path"], change["planned"]) == ("closed_at", plan["actions"][0]["to"])
    assert accounts.now(number)["closed_at"] is None


def test_a_refusal_of_the_database_at_the_commit_is_final(
    sql_target: Ready, accounts: Accounts
) -> None:
    number, name = accounts.new(), f"wanted-{time.time_ns()}"
    plan = sql_target.doing("rename").plan(account_id=number, holder=name)
    other = accounts.new(holder=name)
    answer = sql_target.commit(plan, "idem_taken_name_1")
    assert answer.status_code == 409
    accounts.run("DELETE FROM accounts WHERE id = %s", other)
    again = sql_target.commit(plan, "idem_taken_name_1")
    assert (again.status_code, again.json()) == (409, answer.json())
    assert sql_target.read(plan)["status"] == "not_applied"


def test_two_at_once_write_once(sql_target: Ready, accounts: Accounts) -> None:
    number = accounts.new()
    plans = [sql_target.doing("extend_trial").plan(account_id=number, days=3) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        orders = [(plan, f"idem_{plan['plan_id']}") for plan in plans for _ in range(2)]
        answers = list(pool.map(lambda order: sql_target.commit(*order), orders))
    assert {answer.status_code for answer in answers} <= {200, 409}
    applied = {answer.json()["plan_id"] for answer in answers if answer.status_code == 200}
    assert len(applied) == 1
    assert accounts.now(number)["trial_ends"].isoformat() == "2026-12-04"
    assert accounts.writes(number) == 1


def test_killed_between_effect_and_answer_it_applies_once(
    accounts_url: str, accounts: Accounts, tmp_path: Path
) -> None:
    number = accounts.new(note="slow")
    with start_sql_target(accounts_url, tmp_path) as target:
        plan = target.plan(account_id=number)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(target.commit, plan, "idem_killed_sql_1")
            # Past the rehearsal, in the effect: it is there, and nothing is committed.
            time.sleep(0.8)
            assert target.stop(signal.SIGKILL) == -signal.SIGKILL
        target.start()
        answer = target.commit(plan, "idem_killed_sql_1")
        while answer.status_code in (409, 503):  # PostgreSQL has yet to notice who is gone
            time.sleep(0.2)
            answer = target.commit(plan, "idem_killed_sql_1")
        assert answer.status_code == 200, answer.text
        assert target.read(plan)["status"] == "applied"
        assert target.commit(plan, "idem_killed_sql_1").headers["Idempotent-Replayed"] == "true"
    assert (accounts.now(number)["tier"], accounts.writes(number)) == ("paid", 1)

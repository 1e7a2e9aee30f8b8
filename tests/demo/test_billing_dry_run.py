"""The dry run and the read-back: 7-interfaces, "The target's side"."""

import hashlib
import re
from datetime import datetime

import psycopg
import pytest

from tests.demo.billing_process import Target


def test_it_starts_with_the_invoices_of_the_story(target: Target) -> None:
    invoice = target.invoice("4412")
    assert (invoice["amount_cents"], invoice["refunded_cents"]) == (48000, 0)
    assert (invoice["currency"], invoice["status"]) == ("USD", "paid")
    assert target.invoice("4471")["invoice_id"] == "4471"
    page = target.agent.get("/invoices", params={"limit": 200, "status": "paid"}).json()
    assert len(page["items"]) >= 40
    assert page["next"] is None


def test_a_plan_says_what_will_change(target: Target) -> None:
    plan = target.dry_run("4412").json()
    assert re.fullmatch(r"plan_[0-9a-f]{16}", plan["plan_id"])
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", plan["input_fingerprint"])
    assert plan["covers"] == ["invoice/4412"]
    update = {"op": "update", "target": "invoice/4412"}
    assert plan["actions"] == [
        update | {"field": "refunded_cents", "from": 0, "to": 48000},
        update | {"field": "status", "from": "paid", "to": "refunded"},
    ]


def test_a_plan_lives_ten_minutes(target: Target) -> None:
    plan = target.plan()
    assert re.fullmatch(r"[0-9T:-]{19}\.[0-9]{3}Z", plan["expires_at"])
    created, expires = map(datetime.fromisoformat, (plan["created_at"], plan["expires_at"]))
    assert (expires - created).total_seconds() == 600


def test_a_caller_may_ask_for_a_shorter_plan(target: Target) -> None:
    plan = target.dry_run("4412", Plan_Seconds="65").json()
    created, expires = map(datetime.fromisoformat, (plan["created_at"], plan["expires_at"]))
    assert (expires - created).total_seconds() == 65


@pytest.mark.parametrize("seconds", ["4", "601", "-1", "1e2", "soon", ""])
def test_it_refuses_a_lifespan_it_does_not_offer(target: Target, seconds: str) -> None:
    assert target.dry_run("4412", Plan_Seconds=seconds).status_code == 400


def test_only_the_hash_of_a_token_is_stored(target: Target) -> None:
    token = target.plan()["plan_token"]
    assert len(token) >= 43
    with psycopg.connect(target.database_url) as connection:
        stored = connection.execute("SELECT * FROM plans").fetchall()
    assert token not in repr(stored)
    assert hashlib.sha256(token.encode()).digest() in [bytes(row[1]) for row in stored]


def test_two_dry_runs_of_one_state_share_a_fingerprint_and_nothing_else(target: Target) -> None:
    first, second = (target.dry_run("4412").json() for _ in range(2))
    assert first["input_fingerprint"] == second["input_fingerprint"]
    assert first["plan_id"] != second["plan_id"]
    assert first["plan_token"] != second["plan_token"]


def test_the_fingerprint_covers_inputs_and_state(target: Target) -> None:
    plan = target.plan()
    number = plan["covers"][0].removeprefix("invoice/")
    less = target.dry_run(number, 100).json()
    target.move(plan, 100)
    later = target.dry_run(number, 48000).json()
    assert len({one["input_fingerprint"] for one in (plan, less, later)}) == 3


def test_it_plans_what_is_left_when_less_is_left(target: Target) -> None:
    plan = target.plan()
    target.move(plan, 20000)
    again = target.dry_run(plan["covers"][0].removeprefix("invoice/")).json()
    changes = {a["field"]: (a["from"], a["to"]) for a in again["actions"]}
    assert changes == {
        "refunded_cents": (20000, 48000),
        "status": ("partially_refunded", "refunded"),
    }


def test_a_status_that_stays_is_no_action(target: Target) -> None:
    plan = target.plan()
    target.move(plan, 100)
    again = target.dry_run(plan["covers"][0].removeprefix("invoice/"), 100).json()
    assert [action["field"] for action in again["actions"]] == ["refunded_cents"]


def test_a_full_refund_leaves_nothing_to_change(target: Target) -> None:
    plan = target.plan()
    target.move(plan, 48000)
    answer = target.dry_run(plan["covers"][0].removeprefix("invoice/"))
    assert (answer.status_code, answer.json()["code"]) == (422, "nothing-to-change")


def test_an_unknown_invoice_is_not_there(target: Target) -> None:
    answer = target.dry_run("999999")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown-invoice")


@pytest.mark.parametrize(
    ("inputs", "pointer"),
    [
        ({"amount_cents": 0, "invoice_id": "4412"}, "/amount_cents"),
        ({"amount_cents": -1, "invoice_id": "4412"}, "/amount_cents"),
        ({"amount_cents": 1.5, "invoice_id": "4412"}, "/amount_cents"),
        ({"amount_cents": True, "invoice_id": "4412"}, "/amount_cents"),
        ({"amount_cents": "100", "invoice_id": "4412"}, "/amount_cents"),
        ({"amount_cents": 10**12, "invoice_id": "4412"}, "/amount_cents"),
        ({"invoice_id": "4412"}, "/amount_cents"),
        ({"amount_cents": 1, "invoice_id": 4412}, "/invoice_id"),
        ({"amount_cents": 1, "invoice_id": "04412"}, "/invoice_id"),
        ({"amount_cents": 1, "invoice_id": "٤٤١٢"}, "/invoice_id"),
        ({"amount_cents": 1}, "/invoice_id"),
        ({"amount_cents": 1, "invoice_id": "4412", "a/b": 1}, "/a~1b"),
    ],
)
def test_it_points_at_a_bad_input(target: Target, inputs: object, pointer: str) -> None:
    answer = target.agent.post("/refund/dry_run", json=inputs)
    assert answer.status_code == 422
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]


def test_a_plan_is_read_back_without_its_token(target: Target) -> None:
    plan = target.plan()
    read = target.read(plan)
    assert read.pop("status") == "open"
    assert read.pop("inputs") == {
        "amount_cents": 48000,
        "invoice_id": plan["covers"][0].removeprefix("invoice/"),
    }
    assert read == {name: plan[name] for name in plan if name != "plan_token"}


@pytest.mark.parametrize(
    "plan_id", ["plan_0000000000000000", "nothing", "plan_%00", "..%2f_ledger"]
)
def test_an_unknown_plan_is_not_there(target: Target, plan_id: str) -> None:
    answer = target.app.get(f"/plans/{plan_id}")
    assert answer.status_code == 404

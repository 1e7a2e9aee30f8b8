"""What an API with ETags becomes by configuration alone: the dry run, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from countersign_target.ready.etag.__main__ import main
from tests.target.ready import etag_files
from tests.target.ready.conftest import MakeTarget
from tests.target.ready.processes import Customers, Ready


@pytest.fixture
def target(etag_target: MakeTarget) -> Ready:
    return etag_target()


def test_a_plan_names_every_field_before_and_after(target: Ready, api: Customers) -> None:
    number = api.new()
    plan = target.plan(customer_id=number, email="grace@example.com", city="Bergen", add_cents=500)
    name = f"customer/{number}"
    assert plan["actions"] == [
        {
            "op": "update",
            "target": name,
            "field": "email",
            "from": "ada@example.com",
            "to": "grace@example.com",
            "if_unanswered": "sent again while the object is the same; else a person has to look",
        },
        {
            "op": "update",
            "target": name,
            "field": "credit_cents",
            "from": 1000,
            "to": 1500,
        },
        {"op": "update", "target": name, "field": "address/city", "from": "Oslo", "to": "Bergen"},
    ]
    assert plan["covers"] == [name]
    assert api.writes(number) == []


def test_what_is_added_stops_at_the_limit(target: Ready, api: Customers) -> None:
    plan = target.plan(customer_id=api.new(), add_cents=9_000)
    assert (plan["actions"][0]["from"], plan["actions"][0]["to"]) == (1000, 5000)


def test_the_fingerprint_follows_the_object_and_not_the_order_of_names(
    target: Ready, api: Customers
) -> None:
    number = api.new()
    first = target.plan(customer_id=number, city="Bergen")["input_fingerprint"]
    raw = f'{{"city":"Bergen","customer_id":"{number}"}}'
    headers = {"Content-Type": "application/json"}
    again = target.agent.post("/change_customer/dry_run", content=raw, headers=headers).json()
    assert again["input_fingerprint"] == first
    api.move(number, updated_at="t9")
    assert target.plan(customer_id=number, city="Bergen")["input_fingerprint"] == first
    api.move(number, name="Ada")
    assert target.plan(customer_id=number, city="Bergen")["input_fingerprint"] != first


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ({}, "nothing-to-change"),
        ({"email": "ada@example.com"}, "nothing-to-change"),
        ({"email": 7}, "invalid-request"),
        ({"email": "x" * 101}, "invalid-request"),
        ({"add_cents": True}, "invalid-request"),
        ({"add_cents": 0}, "invalid-request"),
        ({"surprise": 1}, "invalid-request"),
        ({"customer_id": "../admin"}, "invalid-request"),
        ({"customer_id": ".."}, "invalid-request"),
        ({"customer_id": "nobody", "email": "x@example.com"}, "no-such-object"),
    ],
)
def test_it_refuses_inputs_that_cannot_become_a_plan(
    target: Ready, api: Customers, inputs: dict[str, Any], code: str
) -> None:
    answer = target.dry_run(**{"customer_id": api.new(), **inputs})
    assert (answer.status_code, answer.json()["code"]) == (422, code)


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ("weak", 422, "etag-not-strong"),
        ("bare", 422, "etag-not-strong"),
        ("no-etag", 422, "etag-missing"),
        ("redirect", 502, "api-unusable"),
        ("html", 502, "api-unusable"),
        ("500", 502, "api-unusable"),
        ("silence", 504, "api-does-not-answer"),
        ("drip", 504, "api-does-not-answer"),
        ("short", 504, "api-does-not-answer"),
    ],
)
def test_it_plans_on_nothing_but_a_strong_etag(
    target: Ready, api: Customers, fault: str, status: int, code: str
) -> None:
    number = api.new()
    api.arm(read=fault, seconds=0.7)
    answer = target.dry_run(customer_id=number, city="Bergen")
    assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.parametrize(
    ("faults", "code", "words"),
    [
        ({}, 0, "change_customer: keeps its side"),
        ({"lax": "yes"}, 1, "PATCH ignores If-Match"),
        ({"write": "428"}, 1, "was answered 428, not 412"),
        ({"write": "reset"}, 1, "no answer to a write"),
        ({"read": "weak"}, 1, "cannot keep a write from landing on another state"),
        ({"read": "500"}, 1, "answers 500"),
    ],
)
def test_a_probe_tells_whether_the_api_keeps_its_side(
    target: Ready,
    api: Customers,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    faults: dict[str, Any],
    code: int,
    words: str,
) -> None:
    for name in ("APP_TOKEN", "AGENT_TOKEN", "CUSTOMERS_TOKEN"):
        monkeypatch.setenv(name, target.environment[name])
    number = api.new()
    api.arm(**faults)
    inputs = json.dumps({"customer_id": number})
    assert main([target.command[-1], "--probe", inputs]) == code
    assert words in capsys.readouterr().out
    assert api.now(number)["email"] == "ada@example.com"


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({}, "customer_id is not given"),
        ({"customer_id": 77}, "customer_id must be a string"),
        ({"customer_id": "Ada!"}, "customer_id must match [a-z0-9.]{1,12}"),
        ({"customer_id": "77", "email": "x" * 101}, "email must have at most 100 characters"),
        ({"customer_id": "77", "add_cents": 0}, "add_cents must be at least 1"),
        ({"customer_id": 7, "add_cents": True}, "customer_id must be a string, add_cents must"),
        ({"customer_id": "77", "emial": "x"}, "emial is not known here"),
    ],
)
def test_a_probe_asks_nothing_with_inputs_that_the_dry_run_refuses(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    inputs: dict[str, Any],
    words: str,
) -> None:
    for name in ("APP_TOKEN", "AGENT_TOKEN", "CUSTOMERS_TOKEN"):
        monkeypatch.setenv(name, f"{name}-of-at-least-sixteen-characters")
    # Nothing listens there: who asks is told that nobody answers.
    file = tmp_path / "target.toml"
    file.write_text(etag_files.file("http://127.0.0.1:1", "plans.sqlite3"))
    assert main([str(file), "--probe", json.dumps(inputs)]) == 1
    assert capsys.readouterr().out.startswith(f"change_customer: not asked: {words}")


def test_the_agents_credential_does_not_commit(target: Ready, api: Customers) -> None:
    plan = target.plan(customer_id=api.new(), city="Bergen")
    assert target.commit(plan, client=target.agent).status_code == 403

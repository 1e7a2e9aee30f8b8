"""One table of the contract for every framework and store. 7-interfaces, "The target's side"."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest

from tests.target.serving import Shop
from tests.target.shop import AGENT_TOKEN, APP_TOKEN


def outcome(answer: httpx.Response) -> tuple[int, str | None]:
    """Status and code of a refusal, which is a problem document."""
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status_code
    return answer.status_code, answer.json()["code"]


def test_a_plan_says_what_will_change(shop: Shop) -> None:
    item = shop.put(10)
    plan = shop.plan(3, item=item)
    assert re.fullmatch(r"plan_[0-9a-f]{16}", plan["plan_id"])
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", plan["input_fingerprint"])
    assert len(plan["plan_token"]) >= 43
    change = {"op": "update", "target": f"item/{item}", "field": "stock", "from": 10, "to": 7}
    assert (plan["actions"], plan["covers"]) == ([change], [f"item/{item}"])
    created, expires = (datetime.fromisoformat(plan[at]) for at in ("created_at", "expires_at"))
    assert (expires - created).total_seconds() == 600


def test_a_plan_is_read_back_without_its_token(shop: Shop) -> None:
    plan = shop.plan(3)
    read = shop.read(plan)
    assert (read.pop("status"), read.pop("inputs")["take"]) == ("open", 3)
    assert read == {name: plan[name] for name in plan if name != "plan_token"}


def test_the_fingerprint_is_about_inputs_and_state(shop: Shop) -> None:
    item = shop.put(10)
    texts = (f'{{"item":"{item}","take":3}}', f'{{ "take": 3.0, "item": "{item}" }}')
    headers = {"Content-Type": "application/json; charset=utf-8"}
    first, second = (
        shop.agent.post("/take/dry_run", content=text, headers=headers).json() for text in texts
    )
    assert first["input_fingerprint"] == second["input_fingerprint"]
    assert first["plan_token"] != second["plan_token"]
    other = shop.plan(4, item=item)
    shop.put(9, item)
    later = shop.plan(3, item=item)
    prints = {each["input_fingerprint"] for each in (first, other, later)}
    assert len(prints) == 3


def test_a_commit_applies_once_and_repeats_its_answer(shop: Shop) -> None:
    plan = shop.plan(3)
    first, second = (shop.commit(plan, f"key-{plan['plan_id']}") for _ in range(2))
    assert first.status_code == 200
    body = first.json()
    assert (body["plan_id"], body["status"], body["result"]) == (
        plan["plan_id"],
        "applied",
        {"left": 7},
    )
    assert "Idempotent-Replayed" not in first.headers
    assert (second.content, second.headers["Idempotent-Replayed"]) == (first.content, "true")
    assert shop.taken(plan) == [3]
    read = shop.read(plan)
    assert (read["status"], read["result"]) == ("applied", {"left": 7})
    assert outcome(shop.commit(plan)) == (409, "plan-already-applied")


def test_a_key_is_good_for_one_body(shop: Shop) -> None:
    shop.commit(shop.plan(), "key-taken")
    other = shop.plan()
    assert outcome(shop.commit(other, "key-taken")) == (422, "idempotency-key-reused")
    assert (shop.taken(other), shop.read(other)["status"]) == ([], "open")


def test_a_moved_world_is_named_for_ever(shop: Shop) -> None:
    item = shop.put(10)
    plan = shop.plan(3, item=item)
    shop.put(8, item)
    first = shop.commit(plan)
    assert outcome(first) == (409, "state-changed")
    moved = {"path": "stock", "target": f"item/{item}", "planned": 10, "current": 8}
    assert first.json()["changed"] == [moved]
    assert first.json()["plan_created_at"] == plan["created_at"]
    shop.put(10, item)
    assert shop.commit(plan).json() == first.json()
    assert (shop.read(plan)["status"], shop.taken(plan)) == ("not_applied", [])


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"item":"none","take":1}', 404, "unknown-item"),
        (b'{"item":"none"}', 422, "invalid-request"),
        (b'{"item":"none","take":1,"take":1}', 400, "malformed-json"),
        (b'["item"]', 422, "invalid-request"),
        (b"", 400, "malformed-json"),
        (b'{"item":"' + b"x" * 70_000 + b'"}', 413, "too-large"),
    ],
)
def test_a_dry_run_is_refused(shop: Shop, body: bytes, status: int, code: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = shop.agent.post("/take/dry_run", content=body, headers=headers)
    assert outcome(answer) == (status, code)


def test_nothing_to_change_has_its_code(shop: Shop) -> None:
    inputs = {"item": shop.put(0), "take": 1}
    answer = shop.agent.post("/take/dry_run", json=inputs)
    assert outcome(answer) == (422, "nothing-to-change")


@pytest.mark.parametrize(
    ("method", "path", "token", "status"),
    [
        ("POST", "/take/dry_run", None, 401),
        ("POST", "/take/dry_run", "wrong", 401),
        ("POST", "/take/commit", AGENT_TOKEN, 403),
        ("GET", "/plans/plan_0000000000000000", None, 401),
        ("GET", "/plans/plan_0000000000000000", AGENT_TOKEN, 404),
        ("GET", "/plans/plan_0000000000000000", APP_TOKEN, 404),
        ("GET", "/take/commit", APP_TOKEN, 405),
        ("GET", "/nowhere", APP_TOKEN, 404),
        ("GET", "/health/live", None, 200),
    ],
)
def test_who_may_ask_what(
    shop: Shop, method: str, path: str, token: str | None, status: int
) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    sent: dict[str, Any] = {"json": {}} if method == "POST" else {}
    answer = httpx.request(method, f"{shop.url}{path}", headers=headers, trust_env=False, **sent)
    assert answer.status_code == status
    if status >= 400:
        outcome(answer)
    assert answer.headers.get("WWW-Authenticate") == ("Bearer" if status == 401 else None)
    assert answer.headers.get("Allow") == ("POST" if status == 405 else None)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415),
    ],
)
def test_a_body_of_another_kind_is_refused(
    shop: Shop, headers: dict[str, str], status: int
) -> None:
    answer = shop.agent.post("/take/dry_run", content=b"{}", headers=headers)
    assert answer.status_code == status


@pytest.mark.parametrize("key", ["", "two words", "x" * 256])
def test_a_commit_needs_a_good_key(shop: Shop, key: str) -> None:
    plan = shop.plan()
    body = {name: plan[name] for name in ("plan_token", "input_fingerprint")}
    answer = shop.app.post("/take/commit", json=body, headers={"Idempotency-Key": key})
    assert outcome(answer) == (400, "idempotency-key-missing")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"plan_token": "guessed-from-nothing"}, 404, "unknown-plan-token"),
        ({"input_fingerprint": "sha256:0"}, 422, "fingerprint-mismatch"),
        ({"input_fingerprint": ""}, 422, "invalid-request"),
        ({"more": "than asked for"}, 422, "invalid-request"),
    ],
)
def test_a_commit_is_refused(shop: Shop, body: dict[str, str], status: int, code: str) -> None:
    plan = shop.plan()
    answer = shop.commit(plan, **body)
    assert outcome(answer) == (status, code)
    assert plan["plan_token"] not in answer.text
    assert shop.commit(plan).status_code == 200


@pytest.mark.parametrize("keys", [1, 8])
def test_eight_at_once_apply_once(shop: Shop, keys: int) -> None:
    plan, barrier = shop.plan(3, slow=0.05), threading.Barrier(8)

    def attempt(n: int) -> httpx.Response:
        barrier.wait()
        return shop.commit(plan, f"key-{plan['plan_id']}-{n % keys}")

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(attempt, range(8)))
    fresh = [a for a in answers if a.is_success and "Idempotent-Replayed" not in a.headers]
    assert len(fresh) == 1
    assert shop.taken(plan) == [3]
    codes = {answer.json().get("code") for answer in answers}
    assert codes <= ({None, "in-progress"} if keys == 1 else {None, "plan-already-applied"})


def test_rivals_for_one_item_never_take_it_twice(shop: Shop) -> None:
    item = shop.put(10)
    rivals = [shop.plan(3, item=item) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(shop.commit, rivals))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]


def test_an_answer_has_one_date_and_is_not_kept(shop: Shop) -> None:
    plan = shop.plan()
    answer = shop.commit(plan)
    [date] = answer.headers.get_list("Date")
    created = datetime.fromisoformat(plan["created_at"])
    assert abs((parsedate_to_datetime(date) - created).total_seconds()) < 5
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"

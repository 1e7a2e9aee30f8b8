"""The commit: one conditional write, its conflicts, and refusals of the API."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.target.ready.conftest import MakeTarget
from tests.target.ready.processes import Customers


def test_it_writes_once_and_answers_the_same_key_again(
    etag_target: MakeTarget, api: Customers
) -> None:
    target, number = etag_target(), api.new()
    plan = target.plan(customer_id=number, email="Grace@Example.com", add_cents=100)
    answer = target.commit(plan, "idem_write_once_1")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["plan_id"], body["status"]) == (plan["plan_id"], "applied")
    assert body["result"] == {
        "object": f"customer/{number}",
        "etag": '"v2"',
        "fields": {"email": "grace@example.com", "credit_cents": 1100},
        "settled_by": "answer",
        "differs": {"email": {"planned": "Grace@Example.com", "stored": "grace@example.com"}},
    }
    again = target.commit(plan, "idem_write_once_1")
    assert (again.json(), again.headers["Idempotent-Replayed"]) == (body, "true")
    other = target.commit(plan, "idem_write_once_2")
    assert (other.status_code, other.json()["code"]) == (409, "plan-already-applied")
    (write,) = api.writes(number)
    assert write["sent"] == {"email": "Grace@Example.com", "credit_cents": 1100}
    assert write["type"] == "application/merge-patch+json"


def test_a_put_sends_the_whole_object_without_what_is_read_only(
    etag_target: MakeTarget, api: Customers
) -> None:
    target, number = etag_target(method="PUT"), api.new()
    assert target.commit(target.plan(customer_id=number, city="Bergen")).status_code == 200
    (write,) = api.writes(number)
    assert write["sent"] == {
        "email": "ada@example.com",
        "credit_cents": 1000,
        "limit_cents": 5000,
        "changed_by": "nobody",
        "address": {"city": "Bergen", "street": "Gate 1"},
    }


def test_a_world_that_moved_is_a_conflict_that_names_the_fields(
    etag_target: MakeTarget, api: Customers
) -> None:
    target, number = etag_target(), api.new()
    plan = target.plan(customer_id=number, city="Bergen")
    api.move(number, email="eve@example.com", address={"city": "Trondheim"}, updated_at="t7")
    answer = target.commit(plan)
    assert answer.status_code == 409
    name = f"customer/{number}"
    assert answer.json()["changed"] == [
        {
            "path": "email",
            "target": name,
            "planned": "ada@example.com",
            "current": "eve@example.com",
        },
        {"path": "address/city", "target": name, "planned": "Oslo", "current": "Trondheim"},
    ]
    assert answer.json()["plan_created_at"] == plan["created_at"]
    assert target.read(plan)["status"] == "not_applied"
    assert api.writes(number) == []


def test_a_write_that_is_refused_by_412_names_what_moved(
    etag_target: MakeTarget, api: Customers
) -> None:
    """What is ignored is not looked at before the write: the ETag guards it all the same."""
    target, number = etag_target(), api.new()
    plan = target.plan(customer_id=number, city="Bergen")
    api.move(number, updated_at="t7")
    answer = target.commit(plan)
    assert answer.status_code == 409
    assert [change["path"] for change in answer.json()["changed"]] == ["updated_at"]
    assert (target.read(plan)["status"], api.writes(number)) == ("not_applied", [])


def test_an_object_that_is_gone_is_a_conflict(etag_target: MakeTarget, api: Customers) -> None:
    target, number = etag_target(), api.new()
    plan = target.plan(customer_id=number, city="Bergen")
    api.delete(number)
    answer = target.commit(plan)
    assert answer.status_code == 409
    assert answer.json()["changed"][0]["current"] in (None, "no-such-object")


@pytest.mark.parametrize("status", ["400", "401", "422", "428"])
def test_a_refusal_of_the_api_is_final_and_told(
    etag_target: MakeTarget, api: Customers, status: str
) -> None:
    target, number = etag_target(), api.new()
    plan = target.plan(customer_id=number, city="Bergen")
    api.arm(write=status)
    answer = target.commit(plan, f"idem_refused_{status}")
    assert (answer.status_code, answer.json()["code"]) == (422, "api-refused")
    assert f"ordered {status}" in answer.json()["detail"]
    assert target.commit(plan, f"idem_refused_{status}").json() == answer.json()
    assert (target.read(plan)["status"], api.writes(number)) == ("not_applied", [])


def test_a_pace_of_the_api_leaves_the_plan_open(etag_target: MakeTarget, api: Customers) -> None:
    target, number = etag_target(), api.new()
    plan = target.plan(customer_id=number, city="Bergen")
    api.arm(write="429")
    answer = target.commit(plan, "idem_paced_1")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert target.read(plan)["status"] == "open"
    assert target.commit(plan, "idem_paced_1").status_code == 200
    assert len(api.writes(number)) == 1


@pytest.mark.parametrize("settle_by", ["state", "nobody"])
def test_a_yes_without_a_change_is_no_success(
    etag_target: MakeTarget, api: Customers, settle_by: str
) -> None:
    target, number = etag_target(settle_by=settle_by), api.new()
    plan = target.plan(customer_id=number, city="Bergen")
    api.arm(write="nothing-done")
    assert target.commit(plan, f"idem_empty_{settle_by}").status_code >= 500
    assert target.commit(plan, f"idem_empty_{settle_by}").status_code == 200


@pytest.mark.parametrize("settle_by", ["marker", "state", "nobody"])
def test_a_yes_that_nothing_shows_is_no_success(
    etag_target: MakeTarget, api: Customers, settle_by: str
) -> None:
    """Something in between says 204, the API did nothing, and another writer was there."""
    target, number = etag_target(settle_by=settle_by), api.new()
    plan = target.plan(customer_id=number, city="Bergen")
    api.arm(write="nothing-done-moved")
    answer = target.commit(plan, f"idem_empty_moved_{settle_by}")
    assert answer.json()["code"] == "outcome-unknown"
    assert target.read(plan)["status"] == ("not_applied" if settle_by == "marker" else "open")
    assert api.writes(number) == []


def test_an_empty_yes_is_read_again(etag_target: MakeTarget, api: Customers) -> None:
    target, number = etag_target(), api.new()
    api.arm(write="apply-204")
    answer = target.commit(target.plan(customer_id=number, city="Bergen"))
    assert answer.json()["result"]["fields"] == {"address/city": "Bergen"}


def test_two_at_once_write_once(etag_target: MakeTarget, api: Customers) -> None:
    target, number = etag_target(), api.new()
    plans = [target.plan(customer_id=number, add_cents=100) for _ in range(2)]
    api.arm(write="apply-slowly", seconds=0.2)
    with ThreadPoolExecutor(3) as pool:
        orders = [(plans[0], "idem_twins_1"), (plans[0], "idem_twins_1"), (plans[1], "idem_twin_2")]
        answers = list(pool.map(lambda order: target.commit(*order).status_code, orders))
    assert answers.count(200) == 1
    assert set(answers) == {200, 409}
    assert (len(api.writes(number)), api.now(number)["credit_cents"]) == (1, 1100)

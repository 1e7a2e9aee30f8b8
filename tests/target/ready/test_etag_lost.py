"""Writes that were lost, or whose answers were: what proves them, and what is said else."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.target.ready.conftest import MakeTarget, start_etag_target
from tests.target.ready.processes import Customers

PROVING = ("idempotency_key", "marker", "state")


@pytest.mark.parametrize(
    ("settle_by", "fault"),
    [
        *((settle_by, "reset") for settle_by in (*PROVING, "nobody")),
        *(("nobody", fault) for fault in ("silence", "500", "503", "redirect", "html")),
    ],
)
def test_a_write_that_was_lost_on_its_way_is_sent_again_once(
    etag_target: MakeTarget, api: Customers, settle_by: str, fault: str
) -> None:
    target, number = etag_target(settle_by=settle_by), api.new()
    plan = target.plan(customer_id=number, city="Bergen")
    key = f"idem_lost_{settle_by}_{fault}"
    api.arm(write=fault, seconds=0.7)
    assert target.commit(plan, key).status_code >= 500
    assert target.read(plan)["status"] == "open"
    assert target.commit(plan, f"{key}_other").status_code == 409
    assert target.commit(plan, key).status_code == 200
    assert len(api.writes(number)) == 1


@pytest.mark.parametrize("settle_by", PROVING)
@pytest.mark.parametrize("fault", ["apply-silence", "apply-reset", "apply-500"])
def test_a_write_whose_answer_was_lost_is_found_and_not_repeated(
    etag_target: MakeTarget, api: Customers, settle_by: str, fault: str
) -> None:
    target, number = etag_target(settle_by=settle_by), api.new()
    plan = target.plan(customer_id=number, add_cents=100)
    key = f"idem_found_{settle_by}_{fault}"
    api.arm(write=fault, seconds=0.7)
    assert target.commit(plan, key).status_code >= 500
    if settle_by != "idempotency_key":
        assert target.read(plan)["status"] == "applied"
    answer = target.commit(plan, key)
    assert answer.status_code == 200, answer.text
    proof = "answer" if settle_by == "idempotency_key" else settle_by
    assert answer.json()["result"]["settled_by"] == proof
    assert answer.json()["result"]["fields"] == {"credit_cents": 1100}
    assert (len(api.writes(number)), api.now(number)["credit_cents"]) == (1, 1100)


def test_where_nothing_proves_it_the_outcome_stays_unknown(
    etag_target: MakeTarget, api: Customers
) -> None:
    target, number = etag_target(), api.new()
    plan = target.plan(customer_id=number, add_cents=100)
    api.arm(write="apply-reset")
    assert target.commit(plan, "idem_unknown_1").status_code >= 500
    for _ in range(2):
        assert target.read(plan)["status"] == "open"
        answer = target.commit(plan, "idem_unknown_1")
        assert (answer.status_code, answer.json()["code"]) == (500, "outcome-unknown")
        assert "nothing proves by whom" in answer.json()["detail"]
    assert len(api.writes(number)) == 1


@pytest.mark.parametrize(
    ("settle_by", "status"),
    [("marker", "not_applied"), ("state", "open"), ("nobody", "open"), ("idempotency_key", "open")],
)
def test_a_lost_write_and_a_world_that_moved_are_told_as_what_is_known(
    etag_target: MakeTarget, api: Customers, settle_by: str, status: str
) -> None:
    """The write was lost before it was carried out; then another writer was there."""
    target, number = etag_target(settle_by=settle_by), api.new()
    plan = target.plan(customer_id=number, add_cents=100)
    api.arm(write="reset")
    key = f"idem_lost_moved_{settle_by}"
    assert target.commit(plan, key).status_code >= 500
    api.move(number, credit_cents=1050)
    assert target.read(plan)["status"] == status
    answer = target.commit(plan, key)
    if status == "not_applied":
        assert (answer.status_code, answer.json()["changed"][0]["current"]) == (409, 1050)
    else:
        assert (answer.status_code, answer.json()["code"]) == (500, "outcome-unknown")
    assert api.writes(number) == []


def test_a_marker_that_the_api_may_not_keep_proves_nothing(
    etag_target: MakeTarget, api: Customers
) -> None:
    """Carried out, the marker dropped, the answer lost: the old value, none, is no proof."""
    target, number = etag_target(settle_by="marker"), api.new(changed_by=None)
    plan = target.plan(customer_id=number, add_cents=100)
    api.arm(write="apply-reset", forgetful=True)
    assert target.commit(plan, "idem_forgetful_1").status_code >= 500
    assert target.read(plan)["status"] == "open"
    assert target.commit(plan, "idem_forgetful_1").json()["code"] == "outcome-unknown"
    fresh = target.plan(customer_id=number, add_cents=100)
    api.arm(forgetful=True)
    differs = target.commit(fresh).json()["result"]["differs"]
    assert differs == {"changed_by": {"planned": fresh["plan_id"], "stored": None}}


def test_a_write_that_a_proxy_sent_twice_is_applied(
    etag_target: MakeTarget, api: Customers
) -> None:
    """The proxy hears 412 to its second try, and passes that on."""
    target, number = etag_target(settle_by="marker"), api.new()
    api.arm(write="apply-twice")
    answer = target.commit(target.plan(customer_id=number, add_cents=100))
    assert (answer.status_code, answer.json()["result"]["settled_by"]) == (200, "marker")
    assert len(api.writes(number)) == 1


@pytest.mark.parametrize("fault", ["apply-slowly", "silence"])
def test_killed_between_effect_and_answer_it_settles_after_its_start(
    api: Customers, tmp_path: Path, fault: str
) -> None:
    number = api.new()
    with start_etag_target(api, tmp_path, settle_by="marker") as target:
        plan = target.plan(customer_id=number, add_cents=100)
        api.arm(write=fault, seconds=1)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(target.commit, plan, "idem_killed_1")
            time.sleep(0.5)
            assert target.stop(signal.SIGKILL) == -signal.SIGKILL
        target.start()
        time.sleep(0.6)  # the API answers nobody
        expected = "applied" if fault == "apply-slowly" else "open"
        assert target.read(plan)["status"] == expected
        assert target.commit(plan, "idem_killed_1").status_code == 200
    assert (len(api.writes(number)), api.now(number)["credit_cents"]) == (1, 1100)


def test_a_plan_that_is_late_is_never_sent(api: Customers, tmp_path: Path) -> None:
    late, lost = api.new(), api.new()
    with start_etag_target(api, tmp_path, seconds=2) as target:
        plan, sent = (target.plan(customer_id=each, city="Bergen") for each in (late, lost))
        api.arm(write="reset")
        assert target.commit(sent, "idem_late_1").status_code >= 500
        time.sleep(2)
        assert target.commit(plan).status_code == 410
        assert target.commit(sent, "idem_late_1").json()["code"] == "outcome-unknown"
        assert [target.read(each)["status"] for each in (plan, sent)] == ["expired", "open"]
    assert api.writes(late) == api.writes(lost) == []


def test_whatever_goes_wrong_nothing_is_done_twice_or_told_wrongly(
    etag_target: MakeTarget, api: Customers
) -> None:
    """Three committers, another writer and faults at random, judged by the API's own ledger."""
    target, chance = etag_target(settle_by="marker"), random.Random(4412)
    customers = [api.new(limit_cents=10**6) for _ in range(3)]
    faults = ["", "", "reset", "apply-reset", "apply-500", "500", "html", "412", "429", "apply-204"]
    faults += ["nothing-done", "nothing-done-moved"]

    def story(number: int) -> dict[str, object]:
        customer = customers[number % 3]
        wish = {"customer_id": customer, "add_cents": 1 + number}
        while (answer := target.dry_run(**wish)).status_code != 200:
            assert answer.status_code == 502  # a fault that was meant for somebody else
        plan = dict(answer.json())
        for _ in range(4):
            api.arm(write=chance.choice(faults), read=chance.choice(["", "", "", "500"]))
            if target.commit(plan, f"idem_story_{number}").status_code in (200, 409, 422):
                break
            if chance.random() < 0.2:
                api.move(customer, name=f"Ada {number}")
        return plan

    with ThreadPoolExecutor(3) as pool:
        plans = list(pool.map(story, range(36)))
    api.arm()
    written = Counter(w["sent"]["changed_by"] for each in customers for w in api.writes(each))
    told = {str(plan["plan_id"]): target.read(plan)["status"] for plan in plans}
    assert max(written.values()) == 1
    assert all(written[name] == 1 for name, status in told.items() if status == "applied")
    assert all(written[name] == 0 for name, status in told.items() if status == "not_applied")
    assert Counter(told.values()).keys() >= {"applied", "not_applied"}

"""The target of the matrix goes wrong in every way it is told to, and forgets nothing."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plans.custody import Secret
from plans.exchanges import Answer, Call, Endpoint, Exchange, NoAnswer, NotSent
from plans.gateway import exchange
from tests.faults.durable_store import planned
from tests.faults.modes import COMMIT_MODES
from tests.faults.target_process import TargetProcess

# What the gateway makes of the first commit in each mode; of the others: an answer.
SILENT = {
    "read then reset": "reset",
    "read then close": "closed",
    "hang": "timeout",
    "hang in the body": "timeout",
    "drip": "deadline",
    "short length": "truncated",
    "cut chunk": "truncated",
    "cut before the last chunk": "truncated",
    "garbage": "malformed",
}
# The modes of 5-faults ("How it is tested"), each by the one here that is it.
DEMANDED = {
    "accept then reset": "accept then reset",
    "read then reset": "read then reset, before",
    "read then close": "read then close, after",
    "hang": "hang, before",
    "drip": "drip, after",
    "short Content-Length": "short length, before",
    "cut chunk": "cut chunk, after",
    "cut without length": "cut without length, before",
    "HTML 200": "page of HTML, before",
    "307": "redirect, before",
    "early 413": "early 413",
    "garbage": "garbage, before",
    "204": "no content, after",
    "409 with changed": "409 changed",
    "409 without changed": "409 bare",
    "409 in progress": "409 in progress",
    "410": "410",
    "422": "422",
    "429": "429",
    "429 with Retry-After": "429 with Retry-After",
    "5xx not stored, not applied": "500, before",
    "5xx not stored, applied": "500, after",
    "5xx stored, not applied": "500 stored, before",
    "5xx stored, applied": "500 stored, after",
}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TargetProcess]:
    with TargetProcess(tmp_path_factory.mktemp("target")) as running:
        yield running


def made(target: TargetProcess, mode: str = "well", **members: Any) -> dict[str, Any]:
    plan = planned({"invoice_id": "4412", "amount_cents": 500}, 60) | members
    target.register([plan])
    target.play((plan["plan_id"], "commit", mode))
    return plan


def commit(
    target: TargetProcess, plan: dict[str, Any], key: str, house: str = "plain", **members: str
) -> Exchange:
    names = ("plan_token", "input_fingerprint")
    body = {name: plan[name] for name in names} | members
    headers = {"Idempotency-Key": key, "Plan-Id": plan["plan_id"], "Attempt": "1"}
    call = Call("POST", "/refund/commit", json.dumps(body).encode(), headers)
    return exchange(_at(target, house), call)


def state(target: TargetProcess, plan: dict[str, Any], house: str = "plain") -> str:
    answer = exchange(_at(target, house), Call("GET", f"/plans/{plan['plan_id']}"))
    assert isinstance(answer, Answer)
    return str(json.loads(answer.body)["status"])


def _at(target: TargetProcess, house: str) -> Endpoint:
    return Endpoint(
        target.url(house),
        internal=True,
        credential=Secret("any"),
        connect_timeout=5.0,
        read_timeout=0.15,
        total_timeout=0.3,
    )


def effects(target: TargetProcess, plan: dict[str, Any]) -> list[str]:
    return [row["key"] for row in target.ledger() if row["plan_id"] == plan["plan_id"]]


@pytest.mark.parametrize("mode", DEMANDED.values(), ids=DEMANDED.keys())
def test_every_mode_that_is_asked_for_is_there(mode: str) -> None:
    assert mode in COMMIT_MODES


@pytest.mark.parametrize("mode", COMMIT_MODES)
def test_a_mode_strikes_where_it_says_and_a_retry_finds_the_truth(
    target: TargetProcess, mode: str
) -> None:
    plan, key = made(target, mode), secrets.token_hex(8)
    met = commit(target, plan, key)
    name, _, when = mode.partition(", ")
    if name in SILENT and when in ("before", "after"):
        assert isinstance(met, NoAnswer)
        assert met.reason == SILENT[name]
    if when in ("before", "after"):
        assert effects(target, plan) == ([key] if when == "after" else [])
    told = state(target, plan)
    assert (told == "applied") is bool(effects(target, plan))
    # However often it is asked: one key, one effect at most.
    for _ in COMMIT_MODES[mode]:
        commit(target, plan, key)
    assert len(effects(target, plan)) <= 1


def test_a_kill_loses_neither_the_ledger_nor_an_answer(tmp_path: Path) -> None:
    with TargetProcess(tmp_path / "target") as target:
        lost, failing = made(target, "hang, after"), made(target, "500 stored, before")
        assert isinstance(commit(target, lost, "key-lost"), NoAnswer)
        assert commit(target, failing, "key-failing").status == 500  # type: ignore[union-attr]
        before, arrived, address = target.ledger(), target.arrivals(), target.url()
        target.kill()
        assert isinstance(commit(target, lost, "key-lost"), NotSent)
        target.start()
        assert (target.ledger(), target.arrivals(), target.url()) == (before, arrived, address)
        assert [row["key"] for row in before] == ["key-lost"]
        assert {row["key"] for row in arrived} == {"key-lost", "key-failing"}
        for plan, key, status in ((lost, "key-lost", 200), (failing, "key-failing", 500)):
            again = commit(target, plan, key)
            assert isinstance(again, Answer)
            assert (again.status, again.headers["idempotent-replayed"]) == (status, "true")
        assert target.ledger() == before


def test_a_kill_while_it_applies_leaves_it_not_applied(tmp_path: Path) -> None:
    with TargetProcess(tmp_path / "target") as target:
        plan = made(target, "hang, applied late")
        commit(target, plan, "key-1")
        assert state(target, plan) == "in_progress"
        target.kill()
        target.start()
        assert (state(target, plan), target.ledger()) == ("open", [])
        assert isinstance(commit(target, plan, "key-1"), Answer)
        assert effects(target, plan) == ["key-1"]


def test_nothing_but_the_key_protects_a_plan(target: TargetProcess) -> None:
    """So that a Countersign that sends another key is found out by the ledger."""
    plan = made(target)
    for key in ("key-a", "key-b", "key-a"):
        commit(target, plan, key)
    assert effects(target, plan) == ["key-a", "key-b"]


def test_a_key_with_another_body_is_refused(target: TargetProcess) -> None:
    plan = made(target)
    commit(target, plan, "key-body")
    refused = commit(target, plan, "key-body", more="than before")
    assert isinstance(refused, Answer)
    assert refused.status == 422


def test_the_refusing_house_takes_calls_once_it_is_told_to(tmp_path: Path) -> None:
    with TargetProcess(tmp_path / "target") as target:
        plan = made(target)
        assert isinstance(commit(target, plan, "key-1", "refusing"), NotSent)
        target.open_refusing()
        assert isinstance(commit(target, plan, "key-1", "refusing"), Answer)
        target.kill()
        target.start()
        assert isinstance(commit(target, plan, "key-1", "refusing"), Answer)


@pytest.mark.parametrize(("house", "status"), [("ahead", 410), ("behind", 200)])
def test_a_house_goes_by_its_own_clock(target: TargetProcess, house: str, status: int) -> None:
    plan = made(target)
    answer = commit(target, plan, secrets.token_hex(8), house)
    assert isinstance(answer, Answer)
    assert answer.status == status
    assert answer.date_skew_seconds is None or abs(answer.date_skew_seconds) > 100

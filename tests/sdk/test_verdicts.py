"""What each answer to a commit proves: T-5 to T-8, row by row, for the direct way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from countersign_agent import Answer, Exchange, NoAnswer, NotSent
from countersign_agent.verdicts import confirm, judge, read_state

PLAN = "plan_1"
CHANGED = [{"path": "refunded_cents", "planned": 0, "current": 20_000}]
APPLIED = {"plan_id": PLAN, "status": "applied", "result": {"refund_id": "r"}}


def answer(status: int, body: Any = None, **headers: str) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    return Answer(status, raw, {name.replace("_", "-"): each for name, each in headers.items()})


ROWS: list[tuple[Exchange, str, str]] = [
    # the exchange, what it proves first, what it proves after an unknown attempt
    (answer(200, APPLIED), "applied", "applied"),
    (answer(201, APPLIED), "applied", "applied"),
    (answer(200, APPLIED | {"plan_id": "plan_2"}), "unknown", "unknown"),
    (answer(200, APPLIED | {"status": "ok"}), "unknown", "unknown"),
    (answer(200, {"plan_id": PLAN, "status": "applied"}), "unknown", "unknown"),
    (answer(200, b'{"plan_id":"x","plan_id":"plan_1","status":"applied"}'), "unknown", "unknown"),
    (answer(200, b"<html>"), "unknown", "unknown"),
    (answer(200, b""), "unknown", "unknown"),
    (answer(204, b""), "unknown", "unknown"),
    (answer(302), "unknown", "unknown"),
    *[(answer(status), "failed", "unknown") for status in (400, 401, 403, 404, 405, 406, 411)],
    *[(answer(status), "failed", "unknown") for status in (413, 415, 421, 422, 428, 431, 501, 505)],
    *[(answer(status), "unknown", "unknown") for status in (402, 408, 418, 425, 500, 502, 503)],
    (answer(409, {"changed": CHANGED}), "conflicted", "unknown"),
    (answer(412, {"changed": CHANGED}), "conflicted", "unknown"),
    (answer(409, {"changed": []}), "unknown", "unknown"),
    (answer(409, {"changed": [{"planned": 0}]}), "unknown", "unknown"),
    (answer(409), "unknown", "unknown"),
    (answer(412), "unknown", "unknown"),
    (answer(409, {"code": "in-progress", "changed": CHANGED}), "unknown", "unknown"),
    (answer(422, {"code": "idempotency-key-reused"}), "unknown", "unknown"),
    (answer(410), "expired", "unknown"),
    (answer(422, {"code": "expired"}), "expired", "unknown"),
    (answer(400, {"type": "https://x/problems/plan-expired"}), "expired", "unknown"),
    (answer(401, {"code": "expired"}), "failed", "unknown"),
    (answer(429, retry_after="2"), "later", "later"),
    (NotSent("ConnectError"), "not_sent", "not_sent"),
    (NoAnswer("timeout"), "unknown", "unknown"),
    (NoAnswer("too-large"), "unknown", "unknown"),
]


@pytest.mark.parametrize(("exchange", "first", "later"), ROWS)
def test_a_negative_answer_is_believed_only_on_a_list(
    exchange: Exchange, first: str, later: str
) -> None:
    assert judge(exchange, PLAN, earlier_unknown=False).kind == first
    assert judge(exchange, PLAN, earlier_unknown=True).kind == later


def test_a_target_says_how_long_to_wait_and_what_changed() -> None:
    assert judge(answer(429, retry_after="2"), PLAN, earlier_unknown=False).pause == 2
    assert judge(answer(429, retry_after="9999"), PLAN, earlier_unknown=False).pause == 300
    assert judge(answer(429, retry_after="soon"), PLAN, earlier_unknown=False).pause is None
    (change,) = judge(answer(409, {"changed": CHANGED}), PLAN, earlier_unknown=False).changed or ()
    assert (change.path, change.planned, change.current) == ("refunded_cents", 0, 20_000)
    assert judge(
        answer(200, APPLIED, idempotent_replayed="true"), PLAN, earlier_unknown=True
    ).replayed


@pytest.mark.parametrize(
    ("exchange", "readable", "past_expiry", "kind"),
    [
        (answer(200, APPLIED), False, False, "applied"),
        (answer(200, APPLIED | {"plan_id": "plan_2"}), True, True, None),
        (answer(200, {"plan_id": PLAN, "status": "not_applied"}), False, False, "conflicted"),
        (answer(200, {"plan_id": PLAN, "status": "expired"}), False, False, "expired"),
        (answer(200, {"plan_id": PLAN, "status": "in_progress"}), False, False, "unknown"),
        (answer(200, {"plan_id": PLAN, "status": "partly_applied"}), False, False, "unknown"),
        (answer(200, {"plan_id": PLAN, "status": "open"}), True, True, None),
        (answer(200, {"plan_id": PLAN, "status": "fine"}), True, True, None),
        (answer(200, b"<html>"), True, True, None),
        (answer(404), False, True, None),
        (answer(404), True, False, "conflicted"),
        (answer(404), True, True, "expired"),
        (answer(500), True, True, None),
        (NoAnswer("timeout"), True, True, None),
    ],
)
def test_a_read_proves_only_the_targets_final_words(
    exchange: Exchange, readable: bool, past_expiry: bool, kind: str | None
) -> None:
    verdict = read_state(exchange, PLAN, readable=readable, past_expiry=past_expiry)
    assert (verdict.kind if verdict else None) == kind


@pytest.mark.parametrize(
    ("says", "kind"),
    [
        ("applied", "applied"),
        ("open", "conflicted"),
        ("not_applied", "conflicted"),
        ("in_progress", "unknown"),
        ("partly_applied", "unknown"),
        ("nonsense", "unknown"),
    ],
)
def test_a_first_refusal_is_confirmed_by_a_read(says: str, kind: str) -> None:
    first = judge(answer(409, {"changed": CHANGED}), PLAN, earlier_unknown=False)
    assert first.believed_after_a_read
    read = read_state(
        answer(200, APPLIED | {"status": says}), PLAN, readable=False, past_expiry=False
    )
    joined = confirm(first, read, open_now=says == "open")
    assert joined.kind == kind
    assert joined.out_of_band == (says == "applied")

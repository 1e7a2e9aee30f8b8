"""T-7 and T-8: what a plan's state, read by its ID, says and what it settles."""

import json

import pytest

from plans.exchanges import Answer, Exchange, NoAnswer, NotSent
from plans.outcomes import Kind, Outcome, Reading, ReadKind, read_state, settle_after_read
from plans.strict_json import JsonObject

PLAN = "plan_1"
MOVED: list[JsonObject] = [{"path": "refunded_cents", "planned": 0, "current": 20000}]


def answer(status: int, body: object = b"") -> Answer:
    return Answer(status, {}, body if isinstance(body, bytes) else json.dumps(body).encode())


STATES = ["applied", "not_applied", "expired", "in_progress", "open", "partly_applied"]


def read(exchange: Exchange, *, readable: bool = True, past: bool = False) -> Reading:
    return read_state(exchange, plan_id=PLAN, consumed_plans_readable=readable, past_expiry=past)


@pytest.mark.parametrize("state", STATES)
def test_a_reading_is_the_targets_own_word(state: str) -> None:
    body: JsonObject = {
        "plan_id": PLAN,
        "status": state,
        "result": {"n": 1},
        "first_applied_at": "t",
    }
    reading = read(answer(200, body))
    assert reading == Reading(ReadKind(state), state, {"n": 1}, "t", body)


@pytest.mark.parametrize(
    ("exchange", "reason"),
    [
        (NotSent("dns", ""), "dns"),
        (NoAnswer("timeout", "", 1.0), "timeout"),
        (answer(500), "status-500"),
        (answer(401), "status-401"),
        (answer(410), "status-410"),
        (answer(204), "status-204"),
        (answer(307), "status-307"),
        (answer(200, b"<html>"), "not-json"),
        (answer(200, []), "not-json"),
        (answer(200, {"plan_id": "plan_2", "status": "applied"}), "other-plan"),
        (answer(200, {"status": "applied"}), "other-plan"),
        (answer(200, {"plan_id": PLAN}), "unknown-status"),
        (answer(200, {"plan_id": PLAN, "status": "missing"}), "unknown-status"),
        (answer(200, {"plan_id": PLAN, "status": "unreadable"}), "unknown-status"),
        (answer(200, {"plan_id": PLAN, "status": ["applied"]}), "unknown-status"),
    ],
)
def test_anything_else_is_unreadable(exchange: Exchange, reason: str) -> None:
    reading = read(exchange)
    assert (reading.kind, reading.reason) == (ReadKind.UNREADABLE, reason)


@pytest.mark.parametrize(
    ("readable", "past", "kind"),
    [
        (True, True, ReadKind.EXPIRED),
        (True, False, ReadKind.NOT_APPLIED),
        (False, True, ReadKind.MISSING),
        (False, False, ReadKind.MISSING),
    ],
)
def test_a_404_is_a_word_only_from_a_target_that_keeps_its_plans(
    readable: bool, past: bool, kind: ReadKind
) -> None:
    assert read(answer(404), readable=readable, past=past).kind is kind


UNKNOWN_409 = Outcome(Kind.UNKNOWN, "status-409", read_first=True)
CONFLICT = Outcome(Kind.CONFLICTED, "changed", changed=MOVED, read_first=True)
LATE = Outcome(Kind.EXPIRED, "expired", read_first=True)


@pytest.mark.parametrize(
    ("state", "alone", "after_conflict", "after_late", "after_bare"),
    [
        ("applied", Kind.APPLIED, Kind.APPLIED, Kind.APPLIED, Kind.APPLIED),
        ("not_applied", Kind.CONFLICTED, Kind.CONFLICTED, Kind.EXPIRED, Kind.CONFLICTED),
        ("expired", Kind.EXPIRED, Kind.CONFLICTED, Kind.EXPIRED, Kind.EXPIRED),
        ("open", Kind.UNKNOWN, Kind.CONFLICTED, Kind.EXPIRED, Kind.UNKNOWN),
        ("in_progress", Kind.UNKNOWN, Kind.UNKNOWN, Kind.UNKNOWN, Kind.UNKNOWN),
        ("unreadable", Kind.UNKNOWN, Kind.UNKNOWN, Kind.UNKNOWN, Kind.UNKNOWN),
        ("missing", Kind.UNKNOWN, Kind.UNKNOWN, Kind.UNKNOWN, Kind.UNKNOWN),
        ("partly_applied", Kind.UNRESOLVED, Kind.UNRESOLVED, Kind.UNRESOLVED, Kind.UNRESOLVED),
    ],
)
def test_what_a_reading_settles(
    state: str, alone: Kind, after_conflict: Kind, after_late: Kind, after_bare: Kind
) -> None:
    reading = Reading(ReadKind(state), state)
    assert settle_after_read(reading, None).kind is alone
    assert settle_after_read(reading, CONFLICT).kind is after_conflict
    assert settle_after_read(reading, LATE).kind is after_late
    assert settle_after_read(reading, UNKNOWN_409).kind is after_bare


@pytest.mark.parametrize("state", list(ReadKind))
@pytest.mark.parametrize("first", [None, UNKNOWN_409, CONFLICT, LATE])
def test_one_read_is_enough_and_only_a_confirmed_conflict_names_what_moved(
    state: ReadKind, first: Outcome | None
) -> None:
    settled = settle_after_read(Reading(state, state.value), first)
    assert not settled.read_first
    assert (settled.changed is not None) is (settled.kind is Kind.CONFLICTED and first is CONFLICT)


def test_applied_after_a_refusal_was_somebody_else() -> None:
    reading = Reading(ReadKind.APPLIED, "applied", {"refund": "r_9"}, "2025-03-14T09:41:12Z")
    settled = settle_after_read(reading, CONFLICT)
    assert settled.applied_out_of_band
    assert settled.result == {"refund": "r_9"}
    assert settled.first_applied_at == "2025-03-14T09:41:12Z"
    assert not settle_after_read(reading, None).applied_out_of_band


@pytest.mark.parametrize(
    ("state", "may_resend"),
    [("in_progress", False), ("open", True), ("unreadable", True), ("missing", True)],
)
def test_a_plan_in_progress_is_waited_for_and_not_sent_again(state: str, may_resend: bool) -> None:
    assert settle_after_read(Reading(ReadKind(state), state), None).may_resend is may_resend

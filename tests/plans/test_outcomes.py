"""T-5…T-9 and T-13, row by row: what an exchange with a target proves, and what it does not."""

import json
from datetime import UTC, datetime

import pytest

from plans.exchanges import Answer, Exchange, NoAnswer, NotSent
from plans.outcomes import (
    Kind,
    Outcome,
    Reading,
    ReadKind,
    classify,
    not_sent_delay,
    parse_retry_after,
    read_state,
    retry_delay,
    settle_after_read,
)

PLAN = "plan_1"
MOVED = [{"path": "refunded_cents", "planned": 0, "current": 20000}]
NOW = "Fri, 14 Mar 2025 09:41:12 GMT"


def answer(status: int, body: object = None, **headers: str) -> Answer:
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, named, raw)


def judged(exchange: Exchange, *, earlier_unknown: bool = False) -> Outcome:
    return classify(exchange, plan_id=PLAN, earlier_unknown=earlier_unknown)


APPLIED = {"plan_id": PLAN, "status": "applied", "result": {"refund": "r_1"}}


# T-6: success


@pytest.mark.parametrize("earlier_unknown", [False, True])
@pytest.mark.parametrize("status", [200, 201, 202])
def test_a_complete_2xx_is_applied(status: int, earlier_unknown: bool) -> None:
    outcome = judged(answer(status, APPLIED), earlier_unknown=earlier_unknown)
    assert (outcome.kind, outcome.result) == (Kind.APPLIED, {"refund": "r_1"})
    assert not outcome.replayed


def test_a_stored_success_that_comes_again_is_applied_and_says_when() -> None:
    body = APPLIED | {"first_applied_at": "2025-03-14T09:41:12Z"}
    outcome = judged(answer(200, body, idempotent_replayed="true"), earlier_unknown=True)
    assert outcome.kind is Kind.APPLIED
    assert outcome.replayed
    assert outcome.first_applied_at == "2025-03-14T09:41:12Z"


@pytest.mark.parametrize("earlier_unknown", [False, True])
@pytest.mark.parametrize(
    ("status", "body", "reason", "alarm"),
    [
        (204, None, "empty-answer", None),
        (200, None, "empty-answer", None),
        (200, b"<html>Sign in</html>", "not-json", "not-json"),
        (200, b'{"plan_id":"plan_1","status":"appl', "not-json", "not-json"),
        (
            200,
            b'{"plan_id":"plan_1","status":"applied","status":"applied"}',
            "not-json",
            "not-json",
        ),
        (200, b'{"plan_id":"plan_1","status":"applied","result":NaN}', "not-json", "not-json"),
        (200, b'\xef\xbb\xbf{"plan_id":"plan_1","status":"applied"}', "not-json", "not-json"),
        (200, [APPLIED], "not-json", "not-json"),
        (200, b"null", "not-json", "not-json"),
        (200, {}, "other-plan", "other-plan"),
        (200, APPLIED | {"plan_id": "plan_2"}, "other-plan", "other-plan"),
        (200, APPLIED | {"plan_id": None}, "other-plan", "other-plan"),
        (202, APPLIED | {"status": "accepted"}, "status-not-applied", "status-not-applied"),
        (200, APPLIED | {"status": "APPLIED"}, "status-not-applied", "status-not-applied"),
        (200, {"plan_id": PLAN}, "status-not-applied", "status-not-applied"),
    ],
)
def test_a_2xx_that_misses_anything_is_unknown(
    status: int, body: object, reason: str, alarm: str | None, earlier_unknown: bool
) -> None:
    outcome = judged(answer(status, body), earlier_unknown=earlier_unknown)
    assert (outcome.kind, outcome.reason, outcome.alarm) == (Kind.UNKNOWN, reason, alarm)


def test_a_result_that_breaks_the_operations_schema_is_unknown() -> None:
    seen: list[object] = []
    outcome = classify(
        answer(200, APPLIED),
        plan_id=PLAN,
        earlier_unknown=False,
        check_result=lambda result: bool(seen.append(result)),
    )
    assert (outcome.kind, outcome.reason) == (Kind.UNKNOWN, "result-not-valid")
    assert seen == [{"refund": "r_1"}]


# T-5: no answer


@pytest.mark.parametrize("earlier_unknown", [False, True])
@pytest.mark.parametrize("reason", ["dns", "connect", "tls", "address-blocked", "invalid-request"])
def test_what_never_left_is_not_sent(reason: str, earlier_unknown: bool) -> None:
    outcome = judged(NotSent(reason, "words"), earlier_unknown=earlier_unknown)  # type: ignore[arg-type]
    assert (outcome.kind, outcome.reason) == (Kind.NOT_SENT, reason)
    assert outcome.problem == {"status": None, "code": reason, "detail": "words"}


@pytest.mark.parametrize("earlier_unknown", [False, True])
@pytest.mark.parametrize(
    "reason", ["timeout", "deadline", "reset", "closed", "truncated", "malformed", "too-large"]
)
def test_what_left_and_came_back_broken_is_unknown(reason: str, earlier_unknown: bool) -> None:
    outcome = judged(NoAnswer(reason, "words", 1.0), earlier_unknown=earlier_unknown)  # type: ignore[arg-type]
    assert (outcome.kind, outcome.reason) == (Kind.UNKNOWN, reason)


# T-7 and T-8: refusals

EXPIRED_TYPE = {"type": "https://billing.example/problems/plan-expired"}
REUSED = {"code": "idempotency-key-reused"}
RUNNING = {"code": "in-progress"}
REFUSALS = [
    *[
        (status, {"detail": "no"}, Kind.FAILED)
        for status in (400, 401, 403, 404, 405, 406, 411, 413, 415, 421, 422, 428, 431, 501, 505)
    ],
    (409, {"changed": MOVED}, Kind.CONFLICTED),
    (412, {"changed": MOVED}, Kind.CONFLICTED),
    (410, None, Kind.EXPIRED),
    (410, {"changed": MOVED}, Kind.EXPIRED),
    (400, EXPIRED_TYPE, Kind.EXPIRED),
    (422, {"code": "plan_expired"}, Kind.EXPIRED),
    (409, {"code": "expired"}, Kind.EXPIRED),
    (412, {"type": "urn:problem:expired"}, Kind.EXPIRED),
    (401, {"code": "expired"}, Kind.FAILED),
    (403, EXPIRED_TYPE, Kind.FAILED),
    (429, {"code": "slow-down"}, Kind.RETRY_LATER),
    (429, {"code": "expired"}, Kind.RETRY_LATER),
    (409, None, Kind.UNKNOWN),
    (409, b"<html>", Kind.UNKNOWN),
    (409, {"changed": []}, Kind.UNKNOWN),
    (409, {"changed": "refunded_cents"}, Kind.UNKNOWN),
    (409, {"changed": [*MOVED, "x"]}, Kind.UNKNOWN),
    (409, {"changed": [{"planned": 0}]}, Kind.UNKNOWN),
    (412, {"detail": "no"}, Kind.UNKNOWN),
    (409, RUNNING, Kind.UNKNOWN),
    (409, RUNNING | {"changed": MOVED}, Kind.UNKNOWN),
    (409, {"type": "https://billing.example/problems/in_progress"}, Kind.UNKNOWN),
    (422, REUSED, Kind.UNKNOWN),
    (422, {"type": "https://billing.example/problems/idempotency-key-reused/"}, Kind.UNKNOWN),
    *[(status, None, Kind.UNKNOWN) for status in (300, 301, 302, 303, 304, 307, 308)],
    *[(status, None, Kind.UNKNOWN) for status in (402, 407, 408, 414, 418, 423, 425, 451, 499)],
    *[(status, None, Kind.UNKNOWN) for status in (500, 502, 503, 504, 507, 511, 599, 600, 999)],
    (500, EXPIRED_TYPE, Kind.UNKNOWN),
    (503, {"changed": MOVED}, Kind.UNKNOWN),
    (408, {"code": "expired"}, Kind.UNKNOWN),
]


@pytest.mark.parametrize(("status", "body", "kind"), REFUSALS)
def test_a_first_attempts_refusal(status: int, body: object, kind: Kind) -> None:
    outcome = judged(answer(status, body))
    assert outcome.kind is kind
    assert outcome.problem is not None
    assert outcome.problem["status"] == status
    assert (outcome.changed == MOVED) is (kind is Kind.CONFLICTED)


@pytest.mark.parametrize(("status", "body", "kind"), REFUSALS)
def test_after_an_unknown_no_refusal_proves_anything(status: int, body: object, kind: Kind) -> None:
    outcome = judged(answer(status, body), earlier_unknown=True)
    assert outcome.kind is Kind.UNKNOWN
    assert outcome.changed is None
    assert not outcome.read_first


def test_every_status_has_an_outcome_and_only_2xx_can_be_applied() -> None:
    for status in range(200, 1000):
        kind = judged(answer(status, APPLIED)).kind
        assert (kind is Kind.APPLIED) is (status < 300)


@pytest.mark.parametrize(
    ("status", "body", "read_first"),
    [
        (409, {"changed": MOVED}, True),
        (409, None, True),
        (409, RUNNING, True),
        (410, None, True),
        (412, {"changed": MOVED}, True),
        (422, {"code": "plan-expired"}, True),
        (404, None, False),
        (422, None, False),
        (429, None, False),
        (500, None, False),
    ],
)
def test_a_first_409_410_412_is_confirmed_by_a_read(
    status: int, body: object, read_first: bool
) -> None:
    assert judged(answer(status, body)).read_first is read_first


def test_a_conflict_keeps_what_moved_and_when_the_plan_was_made() -> None:
    body = {"changed": MOVED, "plan_created_at": "2025-03-14T09:31:12Z", "detail": "moved"}
    outcome = judged(answer(409, body))
    assert outcome.changed == MOVED
    assert outcome.plan_created_at == "2025-03-14T09:31:12Z"
    assert outcome.problem == {"status": 409, "code": None, "detail": "moved"}


@pytest.mark.parametrize("earlier_unknown", [False, True])
@pytest.mark.parametrize(
    ("status", "body", "circuit", "alarm"),
    [
        (401, None, True, None),
        (403, None, True, None),
        (404, None, False, None),
        (422, REUSED, False, "idempotency-key-reused"),
        (422, {"code": "no-such-invoice"}, False, None),
        (307, None, False, "redirect-not-followed"),
    ],
)
def test_what_is_said_about_the_target_itself(
    status: int, body: object, circuit: bool, alarm: str | None, earlier_unknown: bool
) -> None:
    outcome = judged(answer(status, body), earlier_unknown=earlier_unknown)
    assert (outcome.open_circuit, outcome.alarm) == (circuit, alarm)


@pytest.mark.parametrize("earlier_unknown", [False, True])
@pytest.mark.parametrize(
    ("status", "replayed", "stops"),
    [
        (500, "true", True),
        (503, "True", True),
        (500, "?1", True),
        (500, "false", False),
        (500, "", False),
        (409, "true", False),
    ],
)
def test_a_replayed_5xx_stops_the_resends(
    status: int, replayed: str, stops: bool, earlier_unknown: bool
) -> None:
    exchange = answer(status, None, idempotent_replayed=replayed)
    assert judged(exchange, earlier_unknown=earlier_unknown).stop_resends is stops


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("earlier_unknown", [False, True])
def test_a_retry_after_is_kept_whatever_the_kind(status: int, earlier_unknown: bool) -> None:
    outcome = judged(answer(status, None, retry_after="2"), earlier_unknown=earlier_unknown)
    assert outcome.retry_after == 2.0


def test_a_retry_after_date_counts_from_the_targets_own_clock() -> None:
    later = "Fri, 14 Mar 2025 09:41:42 GMT"
    assert judged(answer(503, None, retry_after=later, date=NOW)).retry_after == 30.0
    assert judged(answer(503, None, retry_after=later)).retry_after is None


def test_a_targets_words_are_kept_short_and_only_if_they_are_words() -> None:
    long = judged(answer(400, {"detail": "x" * 5000, "code": "bad"})).problem
    assert long == {"status": 400, "code": "bad", "detail": "x" * 2000}
    odd = judged(answer(400, {"detail": {"a": 1}, "code": 7})).problem
    assert odd == {"status": 400, "code": None, "detail": None}
    title = judged(answer(400, {"title": "Bad", "type": "about:blank"})).problem
    assert title == {"status": 400, "code": None, "detail": "Bad"}


# T-8: readings

STATES = ["applied", "not_applied", "expired", "in_progress", "open", "partly_applied"]


def read(exchange: Exchange, *, readable: bool = True, past: bool = False) -> Reading:
    return read_state(exchange, plan_id=PLAN, consumed_plans_readable=readable, past_expiry=past)


@pytest.mark.parametrize("state", STATES)
def test_a_reading_is_the_targets_own_word(state: str) -> None:
    body = {"plan_id": PLAN, "status": state, "result": {"n": 1}, "first_applied_at": "t"}
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


# T-9 and T-13: waiting


@pytest.mark.parametrize(
    ("attempt_no", "jitter", "seconds"),
    [
        (1, 0.0, 1.0),
        (2, 0.0, 3.0),
        (3, 0.0, 9.0),
        (4, 0.0, 20.0),
        (5, 0.0, None),
        (0, 0.0, None),
        (1, 0.2, 1.2),
        (4, -0.2, 16.0),
        (4, 5.0, 24.0),
        (4, -5.0, 16.0),
    ],
)
def test_resends_come_at_about_1_3_9_and_20_seconds(
    attempt_no: int, jitter: float, seconds: float | None
) -> None:
    delay = retry_delay(attempt_no, jitter=jitter)
    assert delay == (None if seconds is None else pytest.approx(seconds))


def test_a_target_may_have_its_own_delays() -> None:
    assert [retry_delay(n, [0.05, 0.1]) for n in (1, 2, 3)] == [0.05, 0.1, None]
    assert retry_delay(1, []) is None


def test_what_was_not_sent_is_tried_after_1_3_9_then_every_20_seconds() -> None:
    assert [not_sent_delay(n) for n in (0, 1, 2, 3, 4, 5, 99)] == [1, 1, 3, 9, 20, 20, 20]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0),
        (" 2 ", 2.0),
        ("0", 0.0),
        ("300", 300.0),
        ("301", 300.0),
        ("9999999999", 300.0),
        ("9" * 5000, 300.0),
        ("Fri, 14 Mar 2025 09:42:12 GMT", 60.0),
        ("Friday, 14-Mar-25 09:42:12 GMT", 60.0),
        ("Fri, 14 Mar 2025 10:42:12 GMT", 300.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 300.0),
        ("Fri, 31 Dec 9999 23:59:59 -1200", None),
        ("Fri, 31 Dec 1999 23:59:59 GMT", None),
        (NOW, None),
        ("-1", None),
        ("+2", None),
        ("1.5", None),
        ("1e3", None),
        ("٣", None),
        ("²", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("2, 3", None),
    ],
)
def test_a_retry_after_is_capped_or_ignored(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, datetime(2025, 3, 14, 9, 41, 12, tzinfo=UTC)) == seconds

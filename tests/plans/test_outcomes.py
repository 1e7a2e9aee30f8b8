"""T-5…T-8, row by row: what the answer to a commit proves, and what it does not."""

import json

import pytest

from plans.exchanges import Answer, Exchange, NoAnswer, NotSent
from plans.outcomes import Kind, Outcome, classify
from plans.strict_json import JsonValue

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
    seen: list[JsonValue] = []

    def refuses(result: JsonValue) -> bool:
        seen.append(result)
        return False

    outcome = classify(
        answer(200, APPLIED), plan_id=PLAN, earlier_unknown=False, check_result=refuses
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


def test_no_repr_shows_what_the_target_said() -> None:
    said = {"detail": "tok_secret", "changed": [{"path": "tok_secret"}], "code": "tok_secret"}
    for status in (200, 400, 409, 500):
        assert "tok_secret" not in repr(judged(answer(status, said)))
    assert "tok_secret" not in repr(judged(answer(200, APPLIED | {"result": "tok_secret"})))

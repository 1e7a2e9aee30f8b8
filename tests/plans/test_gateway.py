"""T-3, T-4, T-5 and FM-2…FM-8, FM-21 on real sockets: how a call to a target ends."""

import statistics
import threading
import time

import pytest
from django.db import connection, transaction
from django.test import override_settings

from plans.gateway import Answer, Call, Endpoint, Exchange, NoAnswer, exchange
from plans.outcomes import Kind, classify
from tests.faults.calls import COMMIT, IMPATIENT, endpoint
from tests.faults.raw_target import APPLIED, RawTarget


def call(mode: str, **changes: float) -> Exchange:
    with RawTarget(mode) as target:
        return exchange(endpoint(target.base_url, **changes), COMMIT)


@pytest.mark.parametrize(
    "mode",
    [
        "ok",
        "ok-kept-open",
        "ok-then-reset",
        "ok-chunked",
        "ok-chunk-extension",
        "ok-without-length",
        "ok-after-hints",
        "ok-twice-named",
    ],
)
def test_a_whole_answer_is_an_answer(mode: str) -> None:
    answer = call(mode)
    assert isinstance(answer, Answer)
    assert (answer.status, answer.body) == (200, APPLIED)
    assert answer.elapsed_ms > 0


def test_header_names_are_lower_case_and_repeated_values_joined() -> None:
    answer = call("ok-twice-named")
    assert isinstance(answer, Answer)
    assert answer.headers["x-part"] == "a, b"
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("accept-then-reset", "reset"),
        ("read-then-reset", "reset"),
        ("reset-in-body", "reset"),
        ("read-then-close", "closed"),
        ("hang", "timeout"),
        ("hang-after-head", "timeout"),
        ("drip-head", "deadline"),
        ("drip-body", "deadline"),
        ("drip-hints", "deadline"),
        ("cut-in-status", "truncated"),
        ("cut-in-header", "truncated"),
        ("cut-after-header-line", "truncated"),
        ("short-content-length", "truncated"),
        ("cut-chunk", "truncated"),
        ("cut-before-last-chunk", "truncated"),
        ("cut-in-trailer", "truncated"),
        ("garbage", "malformed"),
        ("http-2", "malformed"),
        ("switching-101", "malformed"),
        ("bare-cr-in-header", "malformed"),
        ("bare-lf-in-header", "malformed"),
        ("nul-in-header", "malformed"),
        ("space-in-header-name", "malformed"),
        ("folded-header", "malformed"),
        ("no-colon-in-header", "malformed"),
        ("two-lengths", "malformed"),
        ("signed-length", "malformed"),
        ("length-and-chunks", "malformed"),
        ("unknown-coding", "malformed"),
        ("negative-chunk", "malformed"),
        ("hex-prefixed-chunk", "malformed"),
        ("chunk-overrun", "malformed"),
        ("http-0.9", "truncated"),
        ("big-with-length", "too-large"),
        ("big-length-only", "too-large"),
        ("big-chunked", "too-large"),
        ("big-without-length", "too-large"),
        ("big-header", "too-large"),
        ("many-headers", "too-large"),
    ],
)
def test_a_broken_answer_is_no_answer_and_says_why(mode: str, reason: str) -> None:
    started = time.monotonic()
    broken = call(mode, **IMPATIENT.get(reason, {}))
    assert isinstance(broken, NoAnswer)
    assert broken.reason == reason
    assert broken.elapsed_ms > 0
    assert time.monotonic() - started < 10
    judged = classify(broken, plan_id="plan_1", earlier_unknown=False)
    assert judged.kind is Kind.UNKNOWN


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("ok", Kind.APPLIED),
        ("html-200", Kind.UNKNOWN),
        ("empty-200", Kind.UNKNOWN),
        ("empty-204", Kind.UNKNOWN),
        ("cut-without-length", Kind.UNKNOWN),
        ("redirect-307", Kind.UNKNOWN),
        ("conflict-409", Kind.CONFLICTED),
        ("bare-409", Kind.UNKNOWN),
        ("in-progress-409", Kind.UNKNOWN),
        ("late-410", Kind.EXPIRED),
        ("refused-422", Kind.FAILED),
        ("busy-429", Kind.RETRY_LATER),
        ("down-503", Kind.UNKNOWN),
    ],
)
def test_what_a_whole_answer_proves(mode: str, kind: Kind) -> None:
    answer = call(mode)
    assert isinstance(answer, Answer)
    assert classify(answer, plan_id="plan_1", earlier_unknown=False).kind is kind


def test_a_connection_closed_before_the_request_was_read_is_not_proof_of_anything() -> None:
    assert isinstance(call("accept-then-close"), NoAnswer)


def test_a_refusal_that_comes_before_the_body_was_sent_is_heard() -> None:
    with RawTarget("early-413") as target:
        big = Call("POST", "/refund/commit", b"x" * 4_000_000)
        answer = exchange(endpoint(target.base_url), big)
    assert isinstance(answer, Answer)
    assert answer.status == 413


def test_a_redirect_is_not_followed() -> None:
    with RawTarget("redirect-307") as target:
        answer = exchange(endpoint(target.base_url), COMMIT)
        assert isinstance(answer, Answer)
        assert (answer.status, target.connections) == (307, 1)


def test_nothing_is_sent_twice() -> None:
    with RawTarget("read-then-close") as target:
        exchange(endpoint(target.base_url), COMMIT)
        assert (target.connections, len(target.requests)) == (1, 1)


def test_the_request_is_exactly_what_the_contract_says() -> None:
    with RawTarget("ok") as target:
        exchange(endpoint(target.base_url + "/v1/"), COMMIT)
        top, _, body = target.requests[0].partition(b"\r\n\r\n")
    lines = top.decode().split("\r\n")
    assert lines[0] == "POST /v1/refund/commit HTTP/1.1"
    assert body == COMMIT.body
    assert sorted(lines[1:]) == [
        "Accept-Encoding: identity",
        "Accept: application/json, application/problem+json",
        "Attempt: 1",
        "Authorization: Bearer cred-of-the-app",
        "Connection: close",
        f"Content-Length: {len(body)}",
        "Content-Type: application/json",
        f"Host: 127.0.0.1:{target.port}",
        "Idempotency-Key: idem_1",
        "Plan-Id: plan_1",
        "User-Agent: Countersign",
    ]


def test_a_read_has_no_body_and_a_target_without_a_credential_gets_none() -> None:
    with RawTarget("ok") as target:
        exchange(Endpoint(target.base_url, internal=True), Call("GET", "/plans/plan_1"))
        sent = target.requests[0].decode().lower()
    assert sent.startswith("get /plans/plan_1 http/1.1")
    assert "content-" not in sent
    assert "authorization" not in sent


# Clocks, transactions, secrets, speed


@pytest.mark.parametrize(
    ("mode", "skew"), [("ok-dated", 0), ("ok-hour-off", 3600), ("ok-odd-date", None), ("ok", None)]
)
def test_the_targets_clock_is_compared_with_ours(mode: str, skew: float | None) -> None:
    answer = call(mode)
    assert isinstance(answer, Answer)
    expected = None if skew is None else pytest.approx(skew, abs=1500)
    assert answer.date_skew_seconds == expected


@pytest.mark.django_db(transaction=True)
def test_no_call_is_made_inside_a_transaction() -> None:
    with RawTarget("ok") as target:
        with transaction.atomic(), pytest.raises(RuntimeError, match="T-3"):
            exchange(endpoint(target.base_url), COMMIT)
        assert target.connections == 0
        assert isinstance(exchange(endpoint(target.base_url), COMMIT), Answer)


@pytest.mark.django_db(transaction=True)
def test_no_database_connection_is_held_while_the_target_thinks() -> None:
    """Else a few that hang would empty the pool, and nothing would expire any more."""
    connection.ensure_connection()
    held: list[object] = []
    with RawTarget("ok") as target:
        exchange(
            endpoint(target.base_url),
            COMMIT,
            on_connected=lambda: held.append(connection.connection),
        )
    assert held == [None]


@pytest.mark.django_db
@override_settings(GATEWAY_ALLOW_IN_TRANSACTION=True)
def test_only_a_setting_of_the_tests_allows_it() -> None:
    assert isinstance(call("ok"), Answer)


def test_no_repr_shows_a_token_a_credential_or_a_body() -> None:
    plain = Endpoint("http://127.0.0.1:1", internal=True, credential="cred-of-the-app")
    shown = repr((plain, COMMIT, call("ok"), call("cut-chunk"), exchange(plain, COMMIT)))
    for secret in ("cred-of-the-app", "tok_secret", "plan_1"):
        assert secret not in shown


def test_a_call_on_loopback_takes_well_under_a_few_milliseconds() -> None:
    with RawTarget("ok") as target:
        here = endpoint(target.base_url)
        times = [exchange(here, COMMIT).elapsed_ms for _ in range(50)]  # type: ignore[union-attr]
    assert statistics.median(times) < 20


def test_many_threads_may_call_at_once() -> None:
    results: list[Exchange] = []
    with RawTarget("ok") as target:
        here = endpoint(target.base_url, read_timeout=5, total_timeout=10)
        work = [
            threading.Thread(target=lambda: results.append(exchange(here, COMMIT)))
            for _ in range(20)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    assert [isinstance(each, Answer) for each in results] == [True] * 20

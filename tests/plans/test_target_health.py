"""How targets answered lately: decayed, written seldom, and never in the way (C-2)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import connection

from plans import health
from plans.clock import clock
from plans.exchanges import Answer, Exchange, NoAnswer, NotSent
from plans.models import Plan, Target, TargetHealth
from tests.faults.scripted_target import ScriptedTarget, answer
from tests.plans.engine import send

pytestmark = pytest.mark.django_db
WELL = Answer(200, {}, b"", date_skew_seconds=0.4)
DOWN = NotSent("connect", "refused")


@pytest.fixture(autouse=True)
def _nothing_seen() -> Iterator[None]:
    health.forget()
    yield
    health.forget()


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """`at(7)`: seven seconds of the monotonic clock."""

    def move(seconds: float) -> None:
        monkeypatch.setattr(time, "monotonic", lambda: seconds)

    move(0)
    return move


def seen(target: Target) -> health.Health:
    return health.of([target.pk])[target.pk]


@pytest.mark.parametrize(
    ("exchange", "fault"),
    [
        (WELL, ""),
        (Answer(409, {}, b""), ""),
        (Answer(429, {}, b""), ""),
        (Answer(404, {}, b""), ""),
        (Answer(401, {}, b""), "HTTP 401"),
        (Answer(403, {}, b""), "HTTP 403"),
        (Answer(503, {}, b""), "HTTP 503"),
        (DOWN, "connect"),
        (NoAnswer("deadline", "the total time was over"), "deadline"),
    ],
)
def test_only_what_a_working_server_does_not_do_is_a_fault(exchange: Exchange, fault: str) -> None:
    assert health.fault_of(exchange) == fault


@pytest.mark.parametrize("status", [401, 403])
def test_it_remembers_when_the_credential_was_refused_until_something_else_fails(
    billing: Target, at: Callable[[float], None], status: int
) -> None:
    since = clock()
    health.note(billing.pk, Answer(status, {}, b""))
    refused_at = seen(billing).refused_at
    assert refused_at is not None
    assert since <= refused_at <= clock()
    at(10)
    health.note(billing.pk, WELL)
    assert seen(billing).refused_at == refused_at
    at(20)
    health.note(billing.pk, DOWN)
    assert seen(billing).refused_at is None


def test_a_target_that_was_never_asked_is_well(billing: Target) -> None:
    assert seen(billing) == health.Health()
    assert (seen(billing).well, seen(billing).known) == (True, False)


def test_shares_halve_in_weight_every_five_minutes(
    billing: Target, at: Callable[[float], None]
) -> None:
    health.note(billing.pk, DOWN)
    past = clock() - timedelta(seconds=health.HALF_LIFE_SECONDS)
    TargetHealth.objects.update(updated_at=past)
    at(10)
    health.note(billing.pk, WELL)
    now = seen(billing)
    assert now.calls == pytest.approx(1.5, abs=0.02)
    assert now.faults == pytest.approx(0.5, abs=0.02)
    assert (now.percent, now.fault, now.skew_seconds) == (33, "connect", 0.4)


def test_what_is_long_ago_says_nothing(billing: Target) -> None:
    health.note(billing.pk, DOWN)
    assert (seen(billing).failing, seen(billing).share) == (True, 1.0)
    TargetHealth.objects.update(updated_at=clock() - timedelta(minutes=6))
    assert (seen(billing).well, seen(billing).known) == (True, False)


def test_it_is_written_at_once_when_it_turns_and_else_every_five_seconds(
    billing: Target, at: Callable[[float], None], django_assert_num_queries: Callable[..., object]
) -> None:
    moments: list[tuple[float, Exchange, int]] = [
        (0, WELL, 1),
        (1, WELL, 0),
        (4.9, WELL, 0),
        (5, WELL, 1),
        (5.5, DOWN, 0),
        (6, DOWN, 1),
        (6.5, WELL, 0),
        (6.9, DOWN, 0),
        (7.1, WELL, 1),
        (12.1, WELL, 1),
    ]
    for second, exchange, writes in moments:
        at(second)
        with django_assert_num_queries(writes):  # type: ignore[attr-defined]  # a context manager
            health.note(billing.pk, exchange)
    now = seen(billing)
    assert (round(now.calls, 1), round(now.faults, 1)) == (10, 3)


@pytest.mark.parametrize(("skew", "well"), [(60.0, True), (60.1, False), (-60.1, False)])
def test_a_clock_that_is_a_minute_off_makes_it_ill(
    billing: Target, skew: float, well: bool
) -> None:
    health.note(billing.pk, Answer(200, {}, b"", date_skew_seconds=skew))
    assert seen(billing).well is well


def test_an_answer_without_a_date_keeps_the_skew(
    billing: Target, at: Callable[[float], None]
) -> None:
    health.note(billing.pk, WELL)
    at(9)
    health.note(billing.pk, Answer(200, {}, b""))
    assert seen(billing).skew_seconds == 0.4


@pytest.mark.django_db(transaction=True)
def test_a_target_that_is_gone_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    health.note(123_456_789, WELL)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    assert "health.not_written" in caplog.text


@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_commits_and_reads_are_remembered(
    approved: Callable[..., Plan], target: ScriptedTarget, billing: Target
) -> None:
    target.play(answer(503))
    send(approved())
    now = seen(billing)
    assert (now.fault, now.failing) == ("HTTP 503", True)

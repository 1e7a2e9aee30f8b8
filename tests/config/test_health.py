"""Alive and ready: each part apart, red where nothing is promised any more."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError
from django.test import Client

from audit import actors
from audit.models import ClockTimestamp, Event
from config import health
from plans import emergency, heartbeats
from plans.backlog import oldest_due_seconds
from plans.clock import clock
from plans.models import Heartbeat, Operation, Plan
from tests.plans.api_calls import Api, submission

PARTS = {"broker", "postgres", "commits", "sweeper", "workers", "seals", "clock", "sending"}


@pytest.fixture
def _everybody_lives(db: None) -> None:
    heartbeats.beat([heartbeats.SWEEPER, "worker:commit", "worker:default"])


def ready(client: Client) -> tuple[int, dict[str, Any]]:
    answer = client.get("/health/ready")
    return answer.status_code, answer.json()


def test_it_is_alive(client: Client) -> None:
    assert client.get("/health/live").json() == {"status": "live"}


@pytest.mark.usefixtures("_everybody_lives")
def test_it_is_ready(client: Client) -> None:
    status, members = ready(client)
    assert (status, members["status"], members["failing"]) == (200, "ready", [])
    assert members.keys() == PARTS | {"status", "failing"}
    assert all(members[part]["ok"] for part in PARTS)
    assert members["commits"]["oldest_due_seconds"] == 0
    assert abs(members["clock"]["skew_seconds"]) < 5


@pytest.mark.usefixtures("_everybody_lives")
def test_without_a_broker_it_is_degraded_and_serves(client: Client, settings: LazySettings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    status, members = ready(client)
    assert (status, members["status"], members["failing"]) == (200, "degraded", ["broker"])
    assert members["broker"] == {"ok": False}


def test_without_postgres_it_is_unavailable(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> float:
        raise OperationalError("connection refused")

    monkeypatch.setattr(health, "oldest_due_seconds", away)
    status, members = ready(client)
    assert (status, members["status"]) == (503, "unavailable")
    assert members["failing"] == ["postgres", "commits"]
    assert members["commits"]["oldest_due_seconds"] is None


@pytest.mark.usefixtures("_everybody_lives")
@pytest.mark.parametrize(("seconds", "status"), [(14, 200), (16, 503)])
def test_a_commit_that_is_due_for_too_long_is_red(
    client: Client, make_plan: Callable[..., Plan], seconds: int, status: int
) -> None:
    make_plan("approved", next_attempt_at=clock() - timedelta(seconds=seconds))
    found, members = ready(client)
    assert (found, members["commits"]["ok"]) == (status, status == 200)
    assert seconds <= members["commits"]["oldest_due_seconds"] < seconds + 1


@pytest.mark.usefixtures("_everybody_lives")
@pytest.mark.parametrize(
    ("part", "seconds", "failing", "status"),
    [
        ("sweeper", 9, [], 200),
        ("sweeper", 11, ["sweeper"], 503),
        ("worker:commit", 14, [], 200),
        ("worker:commit", 16, ["workers"], 200),
        ("worker:default", 16, ["workers"], 200),
    ],
)
def test_silence_is_noticed(
    client: Client, part: str, seconds: int, failing: list[str], status: int
) -> None:
    heard = clock() - timedelta(seconds=seconds)
    Heartbeat.objects.filter(part=part).update(beat_at=heard)
    found, members = ready(client)
    assert (found, members["failing"]) == (status, failing)


@pytest.mark.django_db
def test_who_was_never_heard_is_silent(client: Client) -> None:
    status, members = ready(client)
    assert (status, members["failing"]) == (503, ["sweeper", "workers"])
    assert members["workers"]["silent_seconds"] == {"commit": None, "default": None}


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_everybody_lives")
@pytest.mark.parametrize(("seconds", "failing"), [(20, []), (40, ["seals"])])
def test_events_that_wait_for_their_seal_are_yellow(
    client: Client, seconds: int, failing: list[str]
) -> None:
    at = clock() - timedelta(seconds=seconds)
    Event.objects.create(action="x", actor_kind="system", actor_id="x", actor_label="x", at=at)
    status, members = ready(client)
    assert (status, members["failing"]) == (200, failing)
    assert seconds <= members["seals"]["lag_seconds"] < seconds + 2


@pytest.mark.usefixtures("_everybody_lives")
@pytest.mark.parametrize(("ahead", "status"), [(50, 200), (70, 503), (-70, 503)])
def test_two_clocks_that_differ_by_a_minute_are_red(
    client: Client, monkeypatch: pytest.MonkeyPatch, ahead: int, status: int
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + ahead)
    found, members = ready(client)
    assert (found, "clock" in members["failing"]) == (status, status == 503)
    assert members["clock"]["skew_seconds"] == pytest.approx(-ahead, abs=5)


@pytest.mark.usefixtures("_everybody_lives")
def test_the_emergency_stop_is_told_without_its_reason(client: Client) -> None:
    emergency.stop("A private matter.", actor=actors.OPERATOR)
    status, members = ready(client)
    assert (status, members["failing"]) == (200, ["sending"])
    assert members["sending"]["stopped_since"]
    assert "private" not in str(members)


@pytest.mark.usefixtures("_everybody_lives")
def test_it_asks_as_much_whatever_there_is(
    client: Client,
    make_plan: Callable[..., Plan],
    django_assert_num_queries: Callable[..., Any],
) -> None:
    for _ in range(20):
        make_plan("approved", next_attempt_at=clock())
    with django_assert_num_queries(5):
        ready(client)


def test_it_only_answers_to_reading(client: Client) -> None:
    assert client.post("/health/live").status_code == 405
    assert client.post("/metrics").status_code == 405


def test_the_oldest_due_commit_is_told(api_key: str, refund: Operation) -> None:
    api = Api(api_key)
    for name in ("pl_1", "pl_2", "pl_3"):
        assert api.post("/plans", submission(name)).status_code == 201
    for name, seconds in {"pl_1": 7, "pl_2": 3, "pl_3": -60}.items():
        due = ClockTimestamp() - timedelta(seconds=seconds)
        Plan.objects.filter(plan_id=name).update(next_attempt_at=due)
    assert 7 <= oldest_due_seconds() < 8

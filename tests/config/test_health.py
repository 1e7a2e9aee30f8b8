"""Alive and ready: each dependency apart."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.db import OperationalError
from django.test import Client

from audit.models import ClockTimestamp
from config import health
from plans.backlog import oldest_due_seconds
from plans.models import Operation, Plan
from tests.plans.api_calls import Api, submission


def test_it_is_alive(client: Client) -> None:
    assert client.get("/health/live").json() == {"status": "live"}


@pytest.mark.django_db
def test_it_is_ready(client: Client) -> None:
    answer = client.get("/health/ready")
    members = answer.json()
    assert (answer.status_code, members["status"]) == (200, "ready")
    assert members["postgres"]["ok"] is members["broker"]["ok"] is True
    assert members["commits"] == {"oldest_due_seconds": 0}


@pytest.mark.django_db
def test_without_a_broker_it_is_degraded_and_serves(client: Client, settings: LazySettings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = client.get("/health/ready")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["broker"] == {"ok": False}


def test_without_postgres_it_is_unavailable(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> float:
        raise OperationalError("connection refused")

    monkeypatch.setattr(health, "oldest_due_seconds", away)
    answer = client.get("/health/ready")
    assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")
    assert answer.json()["commits"] == {"oldest_due_seconds": None}


def test_it_only_answers_to_reading(client: Client) -> None:
    assert client.post("/health/live").status_code == 405


def test_the_oldest_due_commit_is_told(api_key: str, refund: Operation) -> None:
    api = Api(api_key)
    for name in ("pl_1", "pl_2", "pl_3"):
        assert api.post("/plans", submission(name)).status_code == 201
    for name, seconds in {"pl_1": 7, "pl_2": 3, "pl_3": -60}.items():
        due = ClockTimestamp() - timedelta(seconds=seconds)
        Plan.objects.filter(plan_id=name).update(next_attempt_at=due)
    assert 7 <= oldest_due_seconds() < 8

"""An answer in hand outlives the database's absence, and a worker its own (FM-23, FM-24, FM-32)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection

from plans import recording
from plans.clock import clock
from plans.committing import claim_attempt, commit
from plans.exchanges import Answer
from plans.models import Plan
from plans.outcomes import Kind, Outcome
from plans.recording import close_attempt
from plans.status import Status
from tests.faults.scripted_target import ScriptedTarget, answer
from tests.plans.engine import actions, fresh, outcomes, send, soon
from tests.plans.refusing_trail import trail_refuses

pytestmark = pytest.mark.django_db(transaction=True)
type Make = Callable[..., Plan]
APPLIED = Outcome(Kind.APPLIED, "applied", {"refund_id": "rf_9"})


@pytest.fixture
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "RETRY_WRITE_SECONDS", 5.0)


@pytest.mark.fm(32)
@pytest.mark.usefixtures("_short_patience")
@pytest.mark.parametrize("status", [200, 409])
def test_an_answer_in_hand_outlives_the_connection(
    approved: Make, target: ScriptedTarget, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FM-32: the backend dies under the result write; the same answer is written again."""
    plan = approved()
    broken: list[bool] = []
    real = recording.settle

    def dying(*args: Any, **kwargs: Any) -> None:
        if not broken:
            broken.append(True)
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        real(*args, **kwargs)

    if status == 409:
        target.play(answer(409, {"changed": [{"path": "refunded_cents"}]}))
    monkeypatch.setattr(recording, "settle", dying)
    kind = commit(soon(plan).pk)
    plan = fresh(plan)
    assert (kind, plan.status) == (
        (Kind.APPLIED, "committed") if status == 200 else (Kind.CONFLICTED, "conflicted")
    )
    assert (len(target.commits), broken) == (1, [True])
    assert actions(plan).count("attempt.closed") == 1


@pytest.mark.fm(24)
def test_a_worker_that_dies_with_the_answer_comes_to_the_same(
    approved: Make, target: ScriptedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FM-23, FM-24: the stored result comes back for the same key, and is told once."""
    plan = soon(approved())

    def killed(*_: Any) -> Kind:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("plans.committing.close_attempt", killed)
        with pytest.raises(SystemExit):
            commit(plan.pk)
    assert (fresh(plan).status, target.applications) == (Status.COMMITTING, [plan.plan_id])
    plan.attempts.update(lease_until=clock() - timedelta(seconds=1))
    plan = send(send(plan))
    assert (plan.status, outcomes(plan)) == (Status.COMMITTED, ["unknown", "applied"])
    assert (target.keys(), target.applications) == ({plan.idempotency_key}, [plan.plan_id])
    assert not plan.applied_out_of_band


@pytest.mark.fm(53)
@pytest.mark.parametrize("code", ["53100", "25006"], ids=["disk full", "read only"])
def test_an_answer_waits_for_a_server_that_takes_no_change(approved: Make, code: str) -> None:
    """The first try is refused, as by a server that just turned read-only; the next one holds."""
    plan = approved()
    claim = claim_attempt(soon(plan).pk)
    assert claim is not None
    with trail_refuses(code, 1):
        close_attempt(claim.attempt, APPLIED, Answer(200, {}, b"{}"))
    assert fresh(plan).status == Status.COMMITTED


@pytest.mark.usefixtures("_short_patience")
def test_an_answer_waits_for_a_row_that_is_locked(approved: Make, target: ScriptedTarget) -> None:
    """A lock timeout is no reason to drop it either."""
    plan = approved()
    claim = claim_attempt(soon(plan).pk)
    assert claim is not None
    settings = connection.settings_dict
    url = {"host": settings["HOST"], "port": settings["PORT"], "dbname": settings["NAME"]}
    with psycopg.connect(**url, user=settings["USER"], password=settings["PASSWORD"]) as other:
        other.execute("SELECT 1 FROM plans_plan FOR UPDATE")
        threading.Timer(1.0, other.rollback).start()
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '200ms'")
        began = time.monotonic()
        close_attempt(claim.attempt, APPLIED, Answer(200, {}, b"{}"))
    assert time.monotonic() - began > 0.8
    assert fresh(plan).status == Status.COMMITTED

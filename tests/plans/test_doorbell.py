"""The broker may be dead: the person does not wait, and the sweep sends (B-5, Q-1, Q-2, FM-28)."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction

from approvals.decisions import Ballot, decide
from config.celery import app
from plans import sweeper
from plans.clock import clock
from plans.management.commands.sweep import Sweeper
from plans.models import Plan, Target
from plans.retrying import RETRIES, retried
from plans.status import Status
from plans.sweeper import due_work
from plans.tasks import commit_plan, ring
from tests.faults.scripted_target import ScriptedTarget, answer
from tests.plans.engine import fresh

type Make = Callable[..., Plan]


@pytest.fixture(params=["refused", "frozen"])
def _dead_broker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody listens, or somebody listens and never says a word."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if request.param == "frozen":
            silent.listen()
        monkeypatch.setattr(app.amqp, "_producer_pool", None)
        monkeypatch.setattr(app, "_pool", None)
        monkeypatch.setitem(app.conf, "broker_write_url", _url(silent))
        monkeypatch.setitem(app.conf, "broker_url", _url(silent))
        yield


def _url(listener: socket.socket) -> str:
    return f"redis://127.0.0.1:{listener.getsockname()[1]}/0"


@pytest.mark.fm(28)
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_dead_broker")
def test_a_dead_broker_costs_the_person_nothing_and_the_commit_seconds(
    pending: Make, target: ScriptedTarget, ada: User, caplog: pytest.LogCaptureFixture
) -> None:
    """FM-28: the answer in less than 2 s, the commit by the sweep within 10 s of the click."""
    plan = pending()
    began = time.monotonic()
    plan = decide(ada, plan.pk, Ballot("approve", "", plan.digest))
    ring(commit_plan, plan.pk)
    assert time.monotonic() - began < 2
    assert "doorbell.failed" in caplog.text
    sweeping = Sweeper(2)
    while fresh(plan).status != Status.COMMITTED and time.monotonic() - began < 10:
        sweeping.look()
        time.sleep(0.2)
    sweeping.finish()
    assert (fresh(plan).status, len(target.commits)) == (Status.COMMITTED, 1)


@pytest.mark.django_db(transaction=True)
def test_the_bell_rings_only_after_the_commit(monkeypatch: pytest.MonkeyPatch, ada: User) -> None:
    rung: list[int] = []
    monkeypatch.setattr(commit_plan, "delay", rung.append)
    with transaction.atomic():
        ring(commit_plan, 7)
        assert rung == []
    with transaction.atomic():
        ring(commit_plan, 8)
        transaction.set_rollback(True)
    assert rung == [7]


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_hears_the_bell_commits_and_reads(
    approved: Make, target: ScriptedTarget
) -> None:
    """One task: the attempt, and at once the read that an answer without proof calls for."""
    plan = approved()
    target.play(answer(204, b"", applies=True))
    commit_plan(plan.pk)
    assert (fresh(plan).status, target.reads) == (Status.COMMITTED, [plan.plan_id])
    commit_plan(plan.pk)
    assert len(target.commits) == 1


# ── What is due ───────────────────────────────────────────────────────────────────────


def _due(plan: Plan) -> set[str]:
    return {work.key[0] for work in due_work() if work.pk == plan.pk}


@pytest.mark.django_db
def test_the_bell_has_a_head_start_and_resends_have_none(approved: Make) -> None:
    plan = approved()
    assert _due(plan) == set()
    Plan.objects.update(next_attempt_at=clock() - sweeper.HEAD_START)
    assert _due(plan) == {"carry_out"}
    for status in (Status.UNKNOWN, Status.COMMITTING):
        Plan.objects.update(status=status, next_attempt_at=clock())
        assert _due(plan) == {"carry_out"}
    Plan.objects.update(next_attempt_at=clock() + timedelta(seconds=5))
    assert _due(plan) == set()


@pytest.mark.django_db
@pytest.mark.parametrize("status", [Status.VERIFYING, Status.PENDING, Status.APPROVED])
def test_what_waits_past_its_time_expires(make_plan: Make, status: Status) -> None:
    plan = make_plan(status, decide_by=clock())
    assert "expire" in _due(plan)
    for work in due_work():
        if work.key == ("expire", plan.pk):
            work()
    assert fresh(plan).status == Status.EXPIRED


@pytest.mark.django_db
@pytest.mark.parametrize("status", [Status.COMMITTING, Status.UNKNOWN, Status.UNRESOLVED])
def test_a_plan_in_flight_is_not_expired_by_the_clock(make_plan: Make, status: Status) -> None:
    plan = make_plan(status, decide_by=clock(), expires_at=clock())
    assert "expire" not in _due(plan)


@pytest.mark.django_db
@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_other_plans_on_the_object_become_stale_after_the_commit(
    approved: Make, pending: Make, target: ScriptedTarget
) -> None:
    """B-8: each by itself, from a durable mark; later plans and other objects stay."""
    plan, same, ready = approved(), pending(), approved()
    elsewhere = pending(actions=[{**plan.actions[0], "target": "invoice/9"}])
    sweeper.carry_out(plan.pk)
    later = pending()
    assert fresh(plan).stales_others
    assert _due(plan) == {"make_others_stale"}
    sweeper.make_others_stale(plan.pk)
    assert [fresh(each).status for each in (same, ready)] == ["stale", "stale"]
    assert [fresh(each).status for each in (elsewhere, later)] == ["pending", "pending"]
    assert not fresh(plan).stales_others


# ── Deadlocks (FM-34) ───────────────────────────────────────────────────────────────────────


def _raising(code: str, times: int) -> tuple[Callable[[], str], list[int]]:
    tried: list[int] = []

    @retried
    def verb() -> str:
        tried.append(1)
        if len(tried) <= times:
            with connection.cursor() as cursor:
                cursor.execute(f"DO $$ BEGIN RAISE SQLSTATE '{code}'; END $$")
        return "done"

    return verb, tried


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_a_verb_that_lost_a_deadlock_runs_again(code: str) -> None:
    verb, tried = _raising(code, times=RETRIES)
    assert (verb(), len(tried)) == ("done", RETRIES + 1)
    verb, tried = _raising(code, times=RETRIES + 1)
    with pytest.raises(OperationalError):
        verb()
    assert len(tried) == RETRIES + 1


@pytest.mark.django_db(transaction=True)
def test_other_faults_are_not_tried_again() -> None:
    verb, tried = _raising("55P03", times=1)
    with pytest.raises(OperationalError):
        verb()
    assert len(tried) == 1


@pytest.mark.django_db(transaction=True)
def test_inside_a_callers_transaction_nothing_can_run_again(billing: Target) -> None:
    verb, tried = _raising("40P01", times=1)
    with pytest.raises(OperationalError), transaction.atomic():
        verb()
    assert len(tried) == 1

"""Claims and leases: any number of workers, dead, frozen or doubled, come to one commit (Q-1)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import OperationalError, connection

from audit.models import Event
from audit.statements import Keys
from plans import committing, sweeper
from plans.clock import clock
from plans.committing import claim_attempt, commit
from plans.management.commands.sweep import Sweeper
from plans.models import Plan, Target
from plans.status import Status
from tests.faults.scripted_target import ScriptedTarget, hang
from tests.plans.engine import actions, fresh, outcomes, send, soon

pytestmark = pytest.mark.django_db(transaction=True)
type Make = Callable[..., Plan]


def _lapse(plan: Plan) -> None:
    """As after a worker's death: the lease is over and nobody wrote an answer."""
    plan.attempts.filter(outcome="open").update(lease_until=clock() - timedelta(seconds=1))


@pytest.mark.fm(26, 51)
def test_a_due_commit_is_claimed_by_one(approved: Make, target: ScriptedTarget) -> None:
    """FM-26, FM-51: the same task eight times at once, and two sweepers beside it."""
    plan, barrier = soon(approved()), threading.Barrier(10)
    target.play(hang(applies=True, until=(gate := threading.Event())))

    def task() -> object:
        try:
            barrier.wait(5)
            kind = commit(plan.pk)
            gate.set()
            return kind
        finally:
            connection.close()

    def sweep() -> None:
        barrier.wait(5)
        sweeping = Sweeper(2)
        sweeping.look()
        sweeping.finish(drop_waiting=False)

    with ThreadPoolExecutor(10) as pool:
        tasks = [pool.submit(task) for _ in range(8)]
        sweeps = [pool.submit(sweep) for _ in range(2)]
        gate.set()
        kinds = [each.result(10) for each in tasks]
        assert [each.result(10) for each in sweeps] == [None, None]
    assert len([kind for kind in kinds if kind]) <= 1
    assert (fresh(plan).status, len(target.commits)) == (Status.COMMITTED, 1)
    assert target.applications == [plan.plan_id]


@pytest.fixture
def _no_head_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeper, "HEAD_START", timedelta(0))
    # Composed anew: with the usual head start in it the statement may be there already.
    anew = Keys(lambda: [finder.find() for finder in sweeper.finders()])
    monkeypatch.setattr(sweeper, "LOOK", anew)


@pytest.mark.usefixtures("_no_head_start")
def test_a_target_that_hangs_does_not_hold_up_the_sweep(
    approved: Make, pending: Make, target: ScriptedTarget
) -> None:
    """Q-2: plans expire, and other commits leave, while one call waits for its answer."""
    stuck = approved()
    target.play(hang(until=(gate := threading.Event())))
    Target.objects.update(read_timeout_seconds=8, total_timeout_seconds=8)
    sweeping = Sweeper(2)
    sweeping.look()
    _wait(lambda: len(target.commits) == 1)
    late, other = pending(decide_by=clock()), approved()
    sweeping.look()
    _wait(lambda: fresh(late).status == Status.EXPIRED and fresh(other).status == "committed")
    sweeping.look()
    assert (fresh(stuck).status, len(target.commits)) == (Status.COMMITTING, 2)
    gate.set()
    sweeping.finish()


def _wait(until: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 10
    while not until():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def test_a_worker_that_dies_in_the_claim_leaves_the_plan_as_it_was(
    approved: Make, target: ScriptedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = soon(approved())
    before = actions(plan)

    def die(*_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with monkeypatch.context() as patch:
        patch.setattr(committing, "commit_call", die)
        with pytest.raises(OperationalError, match="terminat"):
            commit(plan.pk)
    connection.close()
    assert (fresh(plan).status, actions(plan), outcomes(plan)) == (Status.APPROVED, before, [])
    assert send(plan).status == Status.COMMITTED
    assert len(target.commits) == 1


def test_a_lease_that_lapsed_is_an_unknown_attempt(approved: Make, target: ScriptedTarget) -> None:
    """FM-22: nobody can prove that it was not sent; the same key settles it."""
    plan = soon(approved())
    claim = claim_attempt(plan.pk)
    assert claim is not None
    lease = claim.attempt.lease_until - claim.attempt.started_at
    assert lease < timedelta(seconds=60)
    assert fresh(plan).next_attempt_at == claim.attempt.lease_until
    assert send(plan).status == Status.COMMITTING, "the lease is still held"
    _lapse(plan)
    plan = send(plan)
    assert (plan.status, outcomes(plan)) == (Status.UNKNOWN, ["unknown"])
    assert plan.attempts.get().reason == "lease-lapsed"
    plan = send(plan)
    assert (plan.status, len(target.commits)) == (Status.COMMITTED, 1)


def test_a_process_that_was_frozen_sends_nothing(
    approved: Make, target: ScriptedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FM-56: the deadline counts from before the claim; the thief's answer is what counts."""
    plan, real = soon(approved()), committing.claim_attempt

    def frozen(pk: int) -> committing.Claim | None:
        claim = real(pk)
        monkeypatch.setattr(committing, "claim_attempt", real)
        _lapse(plan)
        send(plan)
        assert send(plan).status == Status.COMMITTED
        time.sleep(0.5)
        return claim

    monkeypatch.setattr(committing, "claim_attempt", frozen)
    commit(plan.pk)
    assert (fresh(plan).status, outcomes(plan)) == (Status.COMMITTED, ["unknown", "applied"])
    assert [sent.headers["Attempt"] for sent in target.commits] == ["2"]
    late = Event.objects.get(action="attempt.late_answer")
    assert late.details["outcome"] == "not_sent"

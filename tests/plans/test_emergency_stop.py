"""One switch holds every send (SEC-30, T-3, T-13)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection, transaction

from plans import emergency, expiry
from plans.clock import clock
from plans.committing import claim_attempt
from plans.models import Attempt, Plan, Target
from plans.models.switches import STOP_LOCK
from plans.status import Status
from tests.faults.scripted_target import ScriptedTarget, drop
from tests.plans.engine import fresh, outcomes, read, send, soon
from tests.plans.stopping import GRACE, OTTO, anybody
from tests.plans.story import at_once

type Make = Callable[..., Plan]
pytestmark = pytest.mark.django_db


@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_an_approved_plan_waits_and_goes_when_released(
    approved: Make, target: ScriptedTarget
) -> None:
    plan = approved()
    emergency.stop("The agent runs wild.", actor=OTTO)
    plan = send(plan)
    assert (plan.status, target.commits, outcomes(plan)) == (Status.APPROVED, [], [])
    assert plan.next_attempt_at is not None
    assert clock() < plan.next_attempt_at <= clock() + timedelta(seconds=5)
    emergency.ask_release("It is switched off.", actor=OTTO)
    emergency.release(1, actor=GRACE, may_release=anybody)
    assert send(plan).status == Status.COMMITTED


@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_a_held_plan_expires_at_its_time(approved: Make, target: ScriptedTarget) -> None:
    plan = approved()
    emergency.stop("Wait.", actor=OTTO)
    send(plan)
    late = clock()
    Plan.objects.filter(pk=plan.pk).update(decide_by=late, expires_at=late)
    expiry.expire(plan.pk)
    assert (fresh(plan).status, target.commits) == (Status.EXPIRED, [])


@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_a_held_plan_is_looked_at_again_no_later_than_its_end(approved: Make) -> None:
    plan = approved()
    emergency.stop("Wait.", actor=OTTO)
    end = clock() + timedelta(seconds=2)
    Plan.objects.filter(pk=plan.pk).update(decide_by=end)
    due = send(plan).next_attempt_at
    assert due is not None
    assert due <= end + timedelta(milliseconds=1)


@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_resends_are_held_while_reads_go_on(approved: Make, target: ScriptedTarget) -> None:
    """T-13."""
    target.play(drop())
    plan = send(approved())
    assert plan.status == Status.UNKNOWN
    sent, looked = len(target.commits), len(target.reads)
    emergency.stop("Wait.", actor=OTTO)
    Plan.objects.filter(pk=plan.pk).update(decide_by=clock())
    plan = send(plan)
    assert (plan.status, len(target.commits), outcomes(plan)) == (
        Status.UNKNOWN,
        sent,
        ["unknown"],
    )
    assert plan.next_attempt_at is not None
    assert plan.next_attempt_at > clock() + timedelta(seconds=3)
    read(plan)
    assert len(target.reads) > looked


@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_what_is_on_its_way_comes_to_its_end(approved: Make) -> None:
    claim = claim_attempt(soon(approved()).pk)
    assert claim is not None
    assert emergency.stop("Wait.", actor=OTTO) == 1
    assert Attempt.objects.get().outcome == "open"


@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_a_stop_costs_a_claim_one_query(
    approved: Make, django_assert_num_queries: Callable[..., object]
) -> None:
    with django_assert_num_queries(1):  # type: ignore[attr-defined]  # a context manager
        assert emergency.reason_to_hold() is None


@pytest.mark.django_db(transaction=True)
def test_no_send_begins_after_the_stop_has_answered(
    approved: Make, quick_billing: Target, target: ScriptedTarget
) -> None:
    """Claims in four threads against one stop: each is before it, or held."""
    plans = [approved() for _ in range(24)]
    Plan.objects.update(next_attempt_at=clock())
    shares = [plans[number::4] for number in range(4)]
    began = threading.Event()
    answered_at: list[object] = []

    def claim(mine: list[Plan]) -> int:
        taken = 0
        for plan in mine:
            taken += claim_attempt(plan.pk) is not None
            began.set()
        return taken

    def stop() -> int:
        began.wait(10)
        emergency.stop("Now.", actor=OTTO)
        answered_at.append(clock())
        return Attempt.objects.count()

    jobs: list[Callable[[], int]] = [*(partial(claim, mine) for mine in shares), stop]
    *taken, at_the_stop = [number for number in at_once(jobs) if isinstance(number, int)]
    assert len(taken) == 4
    assert sum(taken) == Attempt.objects.count() == at_the_stop
    assert not Attempt.objects.filter(started_at__gt=answered_at[0]).exists()


@pytest.mark.django_db(transaction=True)
def test_a_stop_waits_for_the_claim_that_asked_before_it(approved: Make) -> None:
    """The claim has looked and is not committed: the stop does not answer before it is."""
    approved()
    asked, go = threading.Event(), threading.Event()
    order: list[str] = []

    def claim() -> None:
        with transaction.atomic():
            assert emergency.reason_to_hold() is None
            asked.set()
            go.wait(10)
            order.append("claimed")

    def stop() -> None:
        asked.wait(10)
        threading.Timer(0.3, go.set).start()
        emergency.stop("Now.", actor=OTTO)
        order.append("stopped")

    at_once([claim, stop])
    assert order == ["claimed", "stopped"]


@pytest.mark.django_db(transaction=True)
def test_a_claim_that_hangs_does_not_hold_up_the_stop(
    approved: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emergency, "SETTLE_MILLISECONDS", 200)
    asked, stopped = threading.Event(), threading.Event()

    def claim() -> None:
        with transaction.atomic():
            emergency.reason_to_hold()
            asked.set()
            stopped.wait(10)

    def stop() -> float:
        asked.wait(10)
        began = time.monotonic()
        emergency.stop("Now.", actor=OTTO)
        stopped.set()
        return time.monotonic() - began

    _, seconds = at_once([claim, stop])
    assert isinstance(seconds, float)
    assert seconds < 2
    assert emergency.reason_to_hold() == "Now."


def test_the_lock_of_the_switch_is_the_same_in_the_database() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        emergency.reason_to_hold()
        cursor.execute(
            "SELECT (classid::bigint << 32) + objid::bigint FROM pg_locks"
            " WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )
        assert (STOP_LOCK,) in cursor.fetchall()

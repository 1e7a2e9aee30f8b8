"""People decide in the same millisecond: one wins, the other is told who did (FM-38 … FM-41)."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from approvals.models import Decision
from plans import expiry
from plans.clock import clock
from plans.errors import Problem
from plans.models import Plan, Replan
from plans.status import Status
from tests.approvals.races.racing import THREADS, Act, at_once, codes_of, said, swept, vote
from tests.faults.scripted_target import ScriptedTarget
from tests.plans.engine import fresh

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.fm(38)
def test_eight_people_approve_and_one_does(
    plan: Plan, people: list[User], target: ScriptedTarget
) -> None:
    """FM-38."""
    results = at_once(*[vote(person, plan) for person in people])
    assert codes_of(results) == ["already-decided"] * (THREADS - 1)
    winner = Decision.objects.get().person
    refused = [result for result in results if isinstance(result, Problem)]
    assert {problem.members["decided_by"] for problem in refused} == {winner.username}
    assert swept(plan).status == Status.COMMITTED
    assert target.applications == [plan.plan_id]
    assert said(plan, "decision.recorded", "plan.approved") == [
        "decision.recorded",
        "plan.approved",
    ]


@pytest.mark.fm(38, 55)
def test_one_person_clicks_eight_times(plan: Plan, ada: User, target: ScriptedTarget) -> None:
    """FM-38, FM-55, BI-45: everybody of them sees their own decision's page."""
    results = at_once(*[vote(ada, plan)] * THREADS)
    assert codes_of(results) == []
    assert Decision.objects.count() == 1
    assert swept(plan).status == Status.COMMITTED
    assert (len(target.commits), said(plan, "plan.approved")) == (1, ["plan.approved"])


@pytest.mark.fm(39)
def test_approve_against_reject(plan: Plan, people: list[User], target: ScriptedTarget) -> None:
    """FM-39."""
    verdicts = ["approve", "reject"] * (THREADS // 2)
    results = at_once(
        *[vote(person, plan, verdict) for person, verdict in zip(people, verdicts, strict=True)]
    )
    decision = Decision.objects.get()
    assert codes_of(results) == ["already-decided"] * (THREADS - 1)
    told = {r.members["verdict"] for r in results if isinstance(r, Problem)}
    assert told == {decision.verdict}
    approved = decision.verdict == "approve"
    assert fresh(plan).status == (Status.APPROVED if approved else Status.REJECTED)
    assert len(target.applications) <= swept(plan).attempts.count() == approved


@pytest.mark.fm(40)
def test_an_expiry_that_passes_while_the_lock_is_waited_for(plan: Plan, people: list[User]) -> None:
    """FM-40: the clock is read after the lock, so a click of before the instant is refused."""
    locked, decide_by = threading.Event(), clock() + timedelta(seconds=0.6)
    Plan.objects.update(decide_by=decide_by)

    def hold() -> None:
        with transaction.atomic():
            Plan.objects.locked(plan.pk)
            locked.set()
            time.sleep(1.0)

    def click(person: User) -> Act:
        def act() -> object:
            locked.wait(5)
            assert clock() < decide_by
            return vote(person, plan)()

        return act

    results = at_once(hold, *[click(person) for person in people[:4]])
    assert codes_of(results) == ["plan-expired"] * 4
    assert (fresh(plan).status, Decision.objects.count()) == (Status.EXPIRED, 0)
    assert (Replan.objects.count(), said(plan, "plan.expired")) == (1, ["plan.expired"])


@pytest.mark.fm(41)
@pytest.mark.parametrize("wait", [0.0, 0.02, 0.05])
def test_approve_against_the_sweeps_expiry(
    plan: Plan, people: list[User], target: ScriptedTarget, wait: float
) -> None:
    """FM-41: one of the two wins. What was approved too late to be sent expires after it (T-3)."""
    Plan.objects.update(decide_by=clock() + timedelta(seconds=0.1 + wait))

    def sweep() -> None:
        while fresh(plan).status == Status.PENDING:
            expiry.expire(plan.pk)

    def click(person: User) -> Act:
        def act() -> object:
            time.sleep(0.1)
            return vote(person, plan)()

        return act

    results = at_once(sweep, sweep, *[click(person) for person in people[:6]])
    events = said(plan, "plan.approved", "plan.expired")
    if Decision.objects.exists():
        assert events in (["plan.approved"], ["plan.approved", "plan.expired"])
        assert len(codes_of(results)) == 5
        assert fresh(plan).status == events[-1].removeprefix("plan.")
    else:
        assert (events, codes_of(results)) == (["plan.expired"], ["plan-expired"] * 6)

"""A decision meets what moves the plan: one wins, the other is told of it (FM-42 … FM-45)."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.decisions import withdraw
from approvals.models import Decision
from audit import actors
from plans import expiry, sweeper
from plans.abandonment import abandon
from plans.clock import clock
from plans.committing import claim_attempt
from plans.errors import Problem
from plans.intents import plan_again
from plans.models import Agent, Intent, Plan, Replan
from plans.status import Status
from plans.submission import submit
from plans.taskwork import Hit, mark_written
from tests.approvals.races.racing import THREADS, Act, at_once, codes_of, said, swept, vote
from tests.faults.scripted_target import ScriptedTarget, hang
from tests.plans.engine import fresh
from tests.plans.story import submission

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.fm(42)
@pytest.mark.parametrize("first", ["nobody", "the approval", "the successor"])
def test_approve_against_supersede(
    plan: Plan, people: list[User], support_agent: Agent, first: str
) -> None:
    """FM-42: one of the two wins, and the other is told by whom."""
    Intent.objects.update(latest_revision=plan.revision)
    votes = [vote(person, plan) for person in people[:7]]
    submits = partial(submit, support_agent, submission(replaces=plan.plan_id))
    groups: dict[str, list[list[Act]]] = {
        "nobody": [[*votes, submits]],
        "the approval": [votes, [submits]],
        "the successor": [[submits], votes],
    }
    results = [result for acts in groups[first] for result in at_once(*acts)]
    if Decision.objects.exists():
        codes = ["already-decided"] * 6 + ["predecessor-unresolved"]
        assert (fresh(plan).status, codes_of(results)) == ("approved", codes)
        assert first != "the successor"
    else:
        assert (fresh(plan).status, codes_of(results)) == ("superseded", ["superseded"] * 7)
        successor = Plan.objects.get(replaces=plan).plan_id
        told = {r.members["replaced_by"] for r in results if isinstance(r, Problem)}
        assert (told, first != "the approval") == ({successor}, True)
    assert len(said(plan, "plan.approved", "plan.superseded")) == 1


def _write(plan: Plan) -> Act:
    return lambda: mark_written(plan.agent, plan.task_id, ["invoice/4412"], "refund")


@pytest.mark.fm(43)
def test_a_write_against_the_commit_of_an_approved_plan(
    plan: Plan, ada: User, target: ScriptedTarget
) -> None:
    """FM-43: before the attempt's row it becomes stale and nothing is sent; after, it is sent."""
    vote(ada, plan)()
    hit, *_ = at_once(_write(plan), *[lambda: sweeper.carry_out(plan.pk)] * 4)
    assert isinstance(hit, Hit)
    stale = [each.pk for each in hit.closed] == [plan.pk]
    assert fresh(plan).status == (Status.STALE if stale else Status.COMMITTED)
    assert len(target.commits) == len(target.applications) == (not stale)
    assert Replan.objects.filter(plan=plan, cause="stale").count() == stale


@pytest.mark.fm(43)
@pytest.mark.parametrize("first", ["nobody", "the write", "the approval"])
def test_approve_against_a_write(
    plan: Plan, people: list[User], target: ScriptedTarget, first: str
) -> None:
    """FM-43: stale in either order, and never sent."""
    votes = [vote(person, plan) for person in people[:4]]
    groups = {
        "nobody": [[_write(plan), *votes]],
        "the write": [[_write(plan)], votes],
        "the approval": [votes, [_write(plan)]],
    }
    for acts in groups[first]:
        at_once(*acts)
    assert swept(plan).status == Status.STALE
    assert (target.commits, fresh(plan).attempts.count()) == ([], 0)
    assert Decision.objects.count() == len(said(plan, "plan.approved")) <= (first != "the write")
    assert Replan.objects.filter(plan=plan, cause="stale").count() == 1


@pytest.mark.fm(44)
@pytest.mark.parametrize("first", ["nobody", "the withdrawal", "the commit"])
def test_withdraw_against_the_start_of_the_commit(
    plan: Plan, ada: User, target: ScriptedTarget, first: str
) -> None:
    """FM-44: cancelled and nothing sent, or 409 and what the target says."""
    vote(ada, plan)()
    withdrawal = partial(withdraw, ada, plan.pk, "no")
    sends: list[Act] = [lambda: sweeper.carry_out(plan.pk)] * 4
    target.play(hang(applies=True, until=(gate := threading.Event())))

    def withdraw_later() -> object:
        try:
            while first == "the commit" and not target.commits:
                time.sleep(0.01)
            return withdrawal()
        finally:
            gate.set()

    groups: dict[str, list[list[Act]]] = {
        "nobody": [[withdraw_later, *sends]],
        "the withdrawal": [[withdraw_later], sends],
        "the commit": [[withdraw_later, *sends]],
    }
    results = [result for acts in groups[first] for result in at_once(*acts)]
    if codes := codes_of(results):
        assert (codes, first != "the withdrawal") == (["commit-in-flight"], True)
        assert (fresh(plan).status, target.applications) == (Status.COMMITTED, [plan.plan_id])
    else:
        assert (fresh(plan).status, target.commits) == (Status.REJECTED, [])
        assert first != "the commit"


def abandoned(plan: Plan) -> tuple[Plan, bool]:
    return abandon(plan, reason="task_end", note="", actor=actors.agent(1, "support-agent"))


def test_abandon_against_approve(plan: Plan, people: list[User], target: ScriptedTarget) -> None:
    """Whoever is first: an abandoned plan is never sent."""
    acts = [vote(person, plan) for person in people[:6]]
    results = at_once(*acts, lambda: abandoned(plan), lambda: abandoned(plan))
    assert not any(isinstance(result, Exception) for result in results[6:])
    assert swept(plan).status == Status.ABANDONED
    assert target.commits == []
    assert len(said(plan, "plan.abandoned")) == 1


@pytest.mark.fm(45)
def test_abandon_against_claim(plan: Plan, ada: User) -> None:
    """FM-45, A-8: closed before the attempt's row, only noted after it."""
    vote(ada, plan)()
    told, *claims = at_once(lambda: abandoned(plan), *[lambda: claim_attempt(plan.pk)] * 5)
    assert isinstance(told, tuple)
    in_flight = told[1]
    assert sum(claim is not None for claim in claims) == in_flight
    assert fresh(plan).status == (Status.COMMITTING if in_flight else Status.ABANDONED)
    words = said(plan, "plan.abandoned", "plan.abandon_noted")
    assert words == ["plan.abandon_noted" if in_flight else "plan.abandoned"]


@pytest.mark.parametrize("unattended", [0, 3])
def test_everything_that_touches_intent_and_plan_at_once(
    plan: Plan, people: list[User], unattended: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Intent before plan, everywhere: no deadlock is met, and none needs its retry (FM-34)."""
    deadlocks: list[Any] = []
    monkeypatch.setattr("plans.retrying.log.info", lambda *a, **k: deadlocks.append((a, k)))
    Intent.objects.update(unattended_replans=unattended)
    Plan.objects.update(decide_by=clock() + timedelta(seconds=0.3))
    person = actors.person(people[0])

    def soon(act: Act) -> Act:
        def later() -> object:
            time.sleep(0.28)
            return act()

        return later

    results = at_once(
        soon(lambda: expiry.expire(plan.pk)),
        soon(lambda: expiry.expire(plan.pk)),
        soon(lambda: plan_again(plan.intent, actor=person)),
        soon(lambda: plan_again(plan.intent, actor=person)),
        soon(lambda: abandoned(plan)),
        *[soon(vote(each, plan)) for each in people[:3]],
    )
    assert (len(results), deadlocks) == (THREADS, [])
    assert Replan.objects.waiting().count() <= 1
    assert len(said(plan, "plan.expired", "plan.abandoned", "plan.approved")) >= 1

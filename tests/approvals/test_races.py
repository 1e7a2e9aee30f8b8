"""Two things in the same millisecond: one wins, the other is told who did (FM-38 … FM-45)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from approvals.decisions import Ballot, decide, withdraw
from approvals.models import Decision
from audit import actors
from audit.models import Event
from plans import custody, expiry, sweeper
from plans.abandonment import abandon
from plans.clock import clock
from plans.committing import claim_attempt
from plans.enrolment import commit_body
from plans.errors import Problem
from plans.intents import plan_again
from plans.models import Agent, Intent, Plan, Replan, Target
from plans.oversight import oversight
from plans.status import Status
from plans.submission import submit
from plans.taskwork import Hit, mark_written
from tests.faults.scripted_target import ScriptedTarget, hang
from tests.plans.engine import TOKEN, fresh
from tests.plans.story import submission

pytestmark = pytest.mark.django_db(transaction=True)
type Make = Callable[..., Plan]
type Act = Callable[[], object]
THREADS = 8


@pytest.fixture
def target(billing: Target) -> Iterator[ScriptedTarget]:
    with ScriptedTarget() as scripted:
        billing.base_url = scripted.base_url
        billing.save()
        yield scripted


@pytest.fixture
def plan(target: ScriptedTarget, make_plan: Make, people: list[User]) -> Plan:
    """A plan that can be committed, before eight people who may all decide."""
    made = make_plan()
    body = commit_body(TOKEN, made.input_fingerprint)
    secrets = {"token": custody.encrypt(TOKEN.encode()), "commit_body": custody.encrypt(body)}
    Plan.objects.filter(pk=made.pk).update(**secrets, **oversight().assess(made).columns())
    return fresh(made)


@pytest.fixture
def people(ada: User) -> list[User]:
    others = [User.objects.create(username=f"reviewer-{n}") for n in range(1, THREADS)]
    for person in others:
        person.groups.set(ada.groups.all())
    return [ada, *others]


def at_once(*acts: Act) -> list[object]:
    """What each act returned, or the problem it raised; they all start behind one barrier."""
    barrier = threading.Barrier(len(acts))

    def run(act: Act) -> object:
        try:
            barrier.wait(10)
            return act()
        except Problem as problem:
            return problem
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return [future.result(30) for future in [pool.submit(run, act) for act in acts]]


def _vote(person: User, plan: Plan, verdict: str = "approve") -> Act:
    note = "" if verdict == "approve" else "no"
    return lambda: decide(person, plan.pk, Ballot(verdict, note, plan.digest))


def _codes(results: list[object]) -> list[str]:
    return sorted(result.code for result in results if isinstance(result, Problem))


def _swept(plan: Plan) -> Plan:
    sweeper.carry_out(plan.pk)
    return fresh(plan)


def _said(plan: Plan, *words: str) -> list[str]:
    """Those of the words that the trail has of this plan, once per event."""
    rows = Event.objects.filter(plan_id=plan.plan_id, action__in=words).order_by("id")
    return list(rows.values_list("action", flat=True))


@pytest.mark.fm(38)
def test_eight_people_approve_and_one_does(
    plan: Plan, people: list[User], target: ScriptedTarget
) -> None:
    """FM-38."""
    results = at_once(*[_vote(person, plan) for person in people])
    assert _codes(results) == ["already-decided"] * (THREADS - 1)
    winner = Decision.objects.get().person
    refused = [result for result in results if isinstance(result, Problem)]
    assert {problem.members["decided_by"] for problem in refused} == {winner.username}
    assert _swept(plan).status == Status.COMMITTED
    assert target.applications == [plan.plan_id]
    assert _said(plan, "decision.recorded", "plan.approved") == [
        "decision.recorded",
        "plan.approved",
    ]


@pytest.mark.fm(38, 55)
def test_one_person_clicks_eight_times(plan: Plan, ada: User, target: ScriptedTarget) -> None:
    """FM-38, FM-55, BI-45: everybody of them sees their own decision's page."""
    results = at_once(*[_vote(ada, plan)] * THREADS)
    assert _codes(results) == []
    assert Decision.objects.count() == 1
    assert _swept(plan).status == Status.COMMITTED
    assert (len(target.commits), _said(plan, "plan.approved")) == (1, ["plan.approved"])


@pytest.mark.fm(39)
def test_approve_against_reject(plan: Plan, people: list[User], target: ScriptedTarget) -> None:
    """FM-39."""
    verdicts = ["approve", "reject"] * (THREADS // 2)
    results = at_once(
        *[_vote(person, plan, verdict) for person, verdict in zip(people, verdicts, strict=True)]
    )
    decision = Decision.objects.get()
    assert _codes(results) == ["already-decided"] * (THREADS - 1)
    told = {r.members["verdict"] for r in results if isinstance(r, Problem)}
    assert told == {decision.verdict}
    approved = decision.verdict == "approve"
    assert fresh(plan).status == (Status.APPROVED if approved else Status.REJECTED)
    assert len(target.applications) <= _swept(plan).attempts.count() == approved


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
            return _vote(person, plan)()

        return act

    results = at_once(hold, *[click(person) for person in people[:4]])
    assert _codes(results) == ["plan-expired"] * 4
    assert (fresh(plan).status, Decision.objects.count()) == (Status.EXPIRED, 0)
    assert (Replan.objects.count(), _said(plan, "plan.expired")) == (1, ["plan.expired"])


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
            return _vote(person, plan)()

        return act

    results = at_once(sweep, sweep, *[click(person) for person in people[:6]])
    events = _said(plan, "plan.approved", "plan.expired")
    if Decision.objects.exists():
        assert events in (["plan.approved"], ["plan.approved", "plan.expired"])
        assert len(_codes(results)) == 5
        assert fresh(plan).status == events[-1].removeprefix("plan.")
    else:
        assert (events, _codes(results)) == (["plan.expired"], ["plan-expired"] * 6)


@pytest.mark.fm(42)
@pytest.mark.parametrize("first", ["nobody", "the approval", "the successor"])
def test_approve_against_supersede(
    plan: Plan, people: list[User], support_agent: Agent, first: str
) -> None:
    """FM-42: one of the two wins, and the other is told by whom."""
    Intent.objects.update(latest_revision=plan.revision)
    votes = [_vote(person, plan) for person in people[:7]]
    submits = partial(submit, support_agent, submission(replaces=plan.plan_id))
    groups: dict[str, list[list[Act]]] = {
        "nobody": [[*votes, submits]],
        "the approval": [votes, [submits]],
        "the successor": [[submits], votes],
    }
    results = [result for acts in groups[first] for result in at_once(*acts)]
    if Decision.objects.exists():
        codes = ["already-decided"] * 6 + ["predecessor-unresolved"]
        assert (fresh(plan).status, _codes(results)) == ("approved", codes)
        assert first != "the successor"
    else:
        assert (fresh(plan).status, _codes(results)) == ("superseded", ["superseded"] * 7)
        successor = Plan.objects.get(replaces=plan).plan_id
        told = {r.members["replaced_by"] for r in results if isinstance(r, Problem)}
        assert (told, first != "the approval") == ({successor}, True)
    assert len(_said(plan, "plan.approved", "plan.superseded")) == 1


def _write(plan: Plan) -> Act:
    return lambda: mark_written(plan.agent, plan.task_id, ["invoice/4412"], "refund")


@pytest.mark.fm(43)
def test_a_write_against_the_commit_of_an_approved_plan(
    plan: Plan, ada: User, target: ScriptedTarget
) -> None:
    """FM-43: before the attempt's row it becomes stale and nothing is sent; after, it is sent."""
    _vote(ada, plan)()
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
    votes = [_vote(person, plan) for person in people[:4]]
    groups = {
        "nobody": [[_write(plan), *votes]],
        "the write": [[_write(plan)], votes],
        "the approval": [votes, [_write(plan)]],
    }
    for acts in groups[first]:
        at_once(*acts)
    assert _swept(plan).status == Status.STALE
    assert (target.commits, fresh(plan).attempts.count()) == ([], 0)
    assert Decision.objects.count() == len(_said(plan, "plan.approved")) <= (first != "the write")
    assert Replan.objects.filter(plan=plan, cause="stale").count() == 1


@pytest.mark.fm(44)
@pytest.mark.parametrize("first", ["nobody", "the withdrawal", "the commit"])
def test_withdraw_against_the_start_of_the_commit(
    plan: Plan, ada: User, target: ScriptedTarget, first: str
) -> None:
    """FM-44: cancelled and nothing sent, or 409 and what the target says."""
    _vote(ada, plan)()
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
    if codes := _codes(results):
        assert (codes, first != "the withdrawal") == (["commit-in-flight"], True)
        assert (fresh(plan).status, target.applications) == (Status.COMMITTED, [plan.plan_id])
    else:
        assert (fresh(plan).status, target.commits) == (Status.REJECTED, [])
        assert first != "the commit"


def _abandon(plan: Plan) -> tuple[Plan, bool]:
    return abandon(plan, reason="task_end", note="", actor=actors.agent(1, "support-agent"))


def test_abandon_against_approve(plan: Plan, people: list[User], target: ScriptedTarget) -> None:
    """Whoever is first: an abandoned plan is never sent."""
    acts = [_vote(person, plan) for person in people[:6]]
    results = at_once(*acts, lambda: _abandon(plan), lambda: _abandon(plan))
    assert not any(isinstance(result, Exception) for result in results[6:])
    assert _swept(plan).status == Status.ABANDONED
    assert target.commits == []
    assert len(_said(plan, "plan.abandoned")) == 1


@pytest.mark.fm(45)
def test_abandon_against_claim(plan: Plan, ada: User) -> None:
    """FM-45, A-8: closed before the attempt's row, only noted after it."""
    _vote(ada, plan)()
    told, *claims = at_once(lambda: _abandon(plan), *[lambda: claim_attempt(plan.pk)] * 5)
    assert isinstance(told, tuple)
    in_flight = told[1]
    assert sum(claim is not None for claim in claims) == in_flight
    assert fresh(plan).status == (Status.COMMITTING if in_flight else Status.ABANDONED)
    words = _said(plan, "plan.abandoned", "plan.abandon_noted")
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
        soon(lambda: _abandon(plan)),
        *[soon(_vote(each, plan)) for each in people[:3]],
    )
    assert (len(results), deadlocks) == (THREADS, [])
    assert Replan.objects.waiting().count() <= 1
    assert len(_said(plan, "plan.expired", "plan.abandoned", "plan.approved")) >= 1

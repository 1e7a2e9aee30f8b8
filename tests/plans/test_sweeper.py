"""What time makes due, found in PostgreSQL, done once, a transaction each (B-8, C-1, Q-2)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import Event
from plans import expiry
from plans.clock import clock
from plans.lifecycle import Verb, transition
from plans.models import Agent, Attempt, Plan, Replan, Target
from plans.status import Status
from plans.sweeper import committed_over_others, due_work, make_others_stale
from tests.plans.planning_target import PlanningTarget, dry_run
from tests.plans.story import at_once, fresh, moved, past, pending, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("refund")]


def test_a_look_is_one_statement_whatever_is_due(make_plan: Callable[..., Plan]) -> None:
    due_work()
    make_plan("pending", decide_by=clock())
    make_plan("approved", next_attempt_at=clock() - timedelta(seconds=5))
    make_plan("unknown", next_read_at=clock())
    with CaptureQueriesContext(connection) as asked:
        work = due_work()
    assert sorted(each.act.__name__ for each in work) == ["carry_out", "expire", "resolve"]
    assert len(asked) == 1


# ── expiry: by PostgreSQL's clock alone ──────────────────────────────────────────────────────


@pytest.mark.parametrize("status", ["verifying", "pending", "approved"])
def test_a_plan_expires_at_decide_by(status: str, make_plan: Callable[..., Plan]) -> None:
    plan = make_plan(status)
    late = make_plan(status, decide_by=clock())
    assert list(expiry.due(10)) == [late.pk]
    expiry.expire(plan.pk)
    expiry.expire(late.pk)
    late = fresh(late)
    assert (fresh(plan).status, late.status) == (status, Status.EXPIRED)
    assert (late.token, late.commit_body, len(late.token_sha256)) == (None, None, 64)
    event = Event.objects.get(action="plan.expired")
    assert (event.actor_kind, event.actor_id) == ("system", "clock")


@pytest.mark.parametrize("hours", [-24, 24])
def test_our_own_clock_decides_nothing(hours: int, support_agent: Agent) -> None:
    alive, dead = pending(support_agent), past(pending(support_agent))
    with time_machine.travel(clock() + timedelta(hours=hours), tick=True):
        assert list(expiry.due(10)) == [dead.pk]
        expiry.expire(alive.pk)
        expiry.expire(dead.pk)
    assert (fresh(alive).status, fresh(dead).status) == (Status.PENDING, Status.EXPIRED)


@pytest.mark.parametrize(
    "status", [s for s in Status if s not in ("verifying", "pending", "approved")]
)
def test_nothing_else_expires_by_the_clock(status: Status, make_plan: Callable[..., Plan]) -> None:
    plan = make_plan(status, decide_by=clock())
    assert list(expiry.due(10)) == []
    expiry.expire(plan.pk)
    assert fresh(plan).status == status


@pytest.mark.django_db(transaction=True)
def test_two_sweepers_expire_a_plan_once(support_agent: Agent) -> None:
    plan = past(pending(support_agent))
    at_once([partial(expiry.expire, plan.pk)] * 8)
    assert Event.objects.filter(action="plan.expired").count() == 1
    assert Replan.objects.count() == 1


# ── B-8: what a commit means for the others ──────────────────────────────────────────────────


@pytest.fixture
def committed(support_agent: Agent) -> Plan:
    """Just committed; its mark is set. The others are submitted before by each test."""
    return pending(support_agent)


def commit(plan: Plan) -> Plan:
    plan = moved(moved(plan, Verb.APPROVE), Verb.START_ATTEMPT)
    return moved(plan, Verb.COMMIT, stales_others=True)


def on(invoice: str) -> dict[str, Any]:
    return dry_run({"amount_cents": 100, "invoice_id": invoice})


def test_open_plans_on_the_same_object_become_stale(
    committed: Plan, support_agent: Agent, make_plan: Callable[..., Plan]
) -> None:
    same = [submitted(support_agent), pending(support_agent)]
    same += [moved(pending(support_agent), Verb.APPROVE), make_plan(Status.COMMITTING)]
    other = pending(support_agent, on("9999"))
    sent = make_plan(Status.COMMITTING)
    Attempt.objects.create(plan=sent, number=1, lease_until=clock())
    closed = make_plan(Status.REJECTED)
    plan = commit(committed)
    later = pending(support_agent)
    assert list(committed_over_others()) == [plan.pk]
    make_others_stale(plan.pk)
    assert {fresh(p).status for p in same} == {Status.STALE}
    assert (fresh(other).status, fresh(later).status) == (Status.PENDING, Status.PENDING)
    assert (fresh(sent).status, fresh(closed).status) == (Status.COMMITTING, Status.REJECTED)
    assert (list(committed_over_others()), fresh(plan).stales_others) == ([], False)
    event = Event.objects.filter(action="plan.stale").earliest("id")
    assert (event.actor_id, event.details["committed"]) == ("committer", plan.plan_id)
    assert Replan.objects.filter(cause="stale").count() == 4


def test_another_targets_object_of_the_same_name_is_another(
    committed: Plan, make_plan: Callable[..., Plan]
) -> None:
    plan = make_plan(Status.PENDING, target=Target.objects.create(name="crm", base_url="http://x"))
    make_others_stale(commit(committed).pk)
    assert fresh(plan).status == Status.PENDING


@pytest.mark.django_db(transaction=True)
def test_each_goes_in_its_own_transaction_and_one_that_fails_blocks_none(
    committed: Plan, support_agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [pending(support_agent) for _ in range(3)]
    plan = commit(committed)

    def failing(row: Plan, *args: Any, **kwargs: Any) -> Plan:
        moved_row = transition(row, *args, **kwargs)
        if row.pk == others[1].pk:
            raise RuntimeError("after the write")
        return moved_row

    with monkeypatch.context() as patch:
        patch.setattr("plans.sweeper.transition", failing)
        make_others_stale(plan.pk)
    assert [fresh(p).status for p in others] == ["stale", "pending", "stale"]
    assert list(committed_over_others()) == [plan.pk]
    make_others_stale(plan.pk)
    assert [fresh(p).status for p in others] == ["stale"] * 3
    assert list(committed_over_others()) == []


@pytest.mark.django_db(transaction=True)
def test_who_is_killed_half_way_leaves_the_mark(
    committed: Plan, support_agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [pending(support_agent) for _ in range(2)]
    plan = commit(committed)

    def killed(row: Plan, *args: Any, **kwargs: Any) -> Plan:
        if row.pk == others[1].pk:
            raise SystemExit
        return transition(row, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr("plans.sweeper.transition", killed)
        with pytest.raises(SystemExit):
            make_others_stale(plan.pk)
    assert [fresh(p).status for p in others] == ["stale", "pending"]
    assert fresh(plan).stales_others
    make_others_stale(plan.pk)
    assert [fresh(p).status for p in others] == ["stale", "stale"]
    assert not fresh(plan).stales_others


@pytest.mark.django_db(transaction=True)
def test_two_sweepers_make_each_stale_once(committed: Plan, support_agent: Agent) -> None:
    for _ in range(4):
        pending(support_agent)
    plan = commit(committed)
    results = at_once([partial(make_others_stale, plan.pk)] * 4)
    assert results == [None] * 4
    assert Event.objects.filter(action="plan.stale").count() == 4
    assert Replan.objects.count() == 4


# ── the whole look ───────────────────────────────────────────────────────────────────────────


@pytest.mark.django_db(transaction=True)
def test_one_look_does_everything_that_is_due(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    dry = on("1")
    planning.knows(dry)
    unread = submitted(support_agent, dry)
    lapsed = past(pending(support_agent, on("2")))
    dead = past(pending(support_agent, on("3")))
    expiry.expire(dead.pk)
    earlier = clock() - timedelta(seconds=5)
    Plan.objects.filter(pk=unread.pk).update(verify_at=earlier)
    Replan.objects.update(next_try_at=earlier)
    call_command("sweep", "--once")
    assert fresh(lapsed).status == Status.EXPIRED
    assert fresh(dead).replaced_by.revision == 2
    assert fresh(unread).status == Status.PENDING


@pytest.mark.django_db(transaction=True)
def test_a_row_that_fails_does_not_stop_the_look(
    support_agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = [past(pending(support_agent)) for _ in range(3)]

    def failing(row: Plan, *args: Any, **kwargs: Any) -> Plan:
        if row.pk == plans[0].pk:
            raise RuntimeError("this one")
        return transition(row, *args, **kwargs)

    monkeypatch.setattr("plans.expiry.transition", failing)
    call_command("sweep", "--once")
    assert [fresh(p).status for p in plans] == ["pending", "expired", "expired"]

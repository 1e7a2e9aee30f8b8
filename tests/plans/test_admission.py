"""How much one agent may ask: pending cap and rate (A-20)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from plans import expiry
from plans.admission import admit
from plans.clock import clock
from plans.errors import Problem, TooManyPending
from plans.intents import IntentRequest, open_intent
from plans.models import Agent, Intent, Plan, Task
from plans.status import Status
from plans.submission import submit
from tests.plans.story import (
    INPUTS,
    INPUTS_VALUE,
    at_once,
    past,
    pending,
    refused,
    submission,
    submitted,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("refund")]
WISH = IntentRequest("billing", "refund", "task-1", INPUTS, INPUTS_VALUE)


def test_a_full_queue_refuses_the_next_plan_and_says_the_limit(support_agent: Agent) -> None:
    Agent.objects.update(pending_cap=2)
    submitted(support_agent)
    pending(support_agent)
    refusal = refused(support_agent, submission())
    assert (refusal.status, refusal.code) == (429, "too-many-pending")
    assert refusal.members["limit"] == 2
    assert int(refusal.headers["Retry-After"]) > 0


@pytest.mark.parametrize("status", [s for s in Status if s not in ("pending", "verifying")])
def test_only_what_waits_counts(
    status: Status, support_agent: Agent, make_plan: Callable[..., Plan]
) -> None:
    Agent.objects.update(pending_cap=1)
    make_plan(status)
    submitted(support_agent)


def test_other_agents_do_not_count(support_agent: Agent, ada: User) -> None:
    Agent.objects.update(pending_cap=1)
    submitted(Agent.objects.create(name="other", owner=ada))
    submitted(support_agent)


def test_wishes_that_wait_for_their_first_dry_run_count(support_agent: Agent) -> None:
    Agent.objects.update(pending_cap=1)
    open_intent(support_agent, WISH)
    with pytest.raises(TooManyPending):
        open_intent(support_agent, WISH)
    assert refused(support_agent, submission()).code == "too-many-pending"
    assert Intent.objects.count() == 1


@pytest.mark.parametrize("lapsed", [False, True], ids=["that waits", "that has lapsed"])
def test_a_plan_in_place_of_one_needs_no_room(lapsed: bool, support_agent: Agent) -> None:
    Agent.objects.update(pending_cap=1)
    old = pending(support_agent)
    if lapsed:
        expiry.expire(past(old).pk)
        submitted(support_agent)
    submitted(support_agent, replaces=old.plan_id)


@pytest.mark.parametrize("status", [Status.REJECTED, Status.FAILED, Status.ABANDONED])
def test_a_wish_that_was_over_needs_room_again(
    status: Status, support_agent: Agent, make_plan: Callable[..., Plan]
) -> None:
    Agent.objects.update(pending_cap=1)
    old = make_plan(status)
    submitted(support_agent)
    refusal = refused(support_agent, submission(replaces=old.plan_id))
    assert refusal.code == "too-many-pending"


@pytest.mark.django_db(transaction=True)
def test_the_cap_holds_under_any_concurrency(support_agent: Agent) -> None:
    Agent.objects.update(pending_cap=3)
    acts = [partial(submit, support_agent, submission()) for _ in range(8)]
    results = at_once(acts)
    assert sorted(type(r).__name__ for r in results) == ["TooManyPending"] * 5 + ["tuple"] * 3
    assert Plan.objects.count() == 3


def test_too_many_in_a_minute_wait(support_agent: Agent) -> None:
    Agent.objects.update(rate_limit_per_minute=3)
    for _ in range(3):
        submitted(support_agent)
    refusal = refused(support_agent, submission())
    assert (refusal.status, refusal.code, refusal.members["limit"]) == (429, "rate-limited", 3)
    assert 1 <= int(refusal.headers["Retry-After"]) <= 20


def test_the_rate_refills_with_time_and_no_further(support_agent: Agent) -> None:
    Agent.objects.update(rate_limit_per_minute=60, rate_tokens=0, rate_at=clock())
    assert refused(support_agent, submission()).code == "rate-limited"
    Agent.objects.update(rate_at=clock() - timedelta(seconds=2.5))
    submitted(support_agent)
    submitted(support_agent)
    assert refused(support_agent, submission()).code == "rate-limited"
    Agent.objects.update(rate_at=clock() - timedelta(days=9))
    submitted(support_agent)
    assert Agent.objects.get().rate_tokens == 59


def test_a_clock_that_steps_back_gives_and_takes_nothing(support_agent: Agent) -> None:
    Agent.objects.update(rate_tokens=5, rate_at=clock() + timedelta(hours=1))
    submitted(support_agent)
    assert Agent.objects.get().rate_tokens == 4


def test_a_replan_is_rated_and_not_capped(support_agent: Agent) -> None:
    Agent.objects.update(rate_limit_per_minute=1, pending_cap=0)
    with transaction.atomic():
        admit(support_agent, "task-1", capped=False)
    with pytest.raises(Problem, match="rate-limited"), transaction.atomic():
        admit(support_agent, "task-1", capped=False)


def test_an_agent_that_is_switched_off_is_nobody(support_agent: Agent) -> None:
    Agent.objects.update(active=False)
    refusal = refused(support_agent, submission())
    assert (refusal.status, refusal.code) == (401, "unauthenticated")


def test_a_task_that_ended_takes_nothing_more(support_agent: Agent) -> None:
    Task.objects.create(agent=support_agent, task_id="task-1")
    refusal = refused(support_agent, submission())
    assert (refusal.status, refusal.code) == (409, "task-ended")
    with pytest.raises(Problem, match="task-ended"):
        open_intent(support_agent, WISH)
    submitted(support_agent, task_id="task-2")

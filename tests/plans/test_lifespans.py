"""An intent whose lifespan is over ends by the clock, unless its commit has begun (R-3)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest

from audit import actors
from audit.models import Event
from plans import expiry
from plans.abandonment import abandon
from plans.clock import clock
from plans.intents import open_intent
from plans.models import Agent, Attempt, Intent, Plan, Replan
from plans.sweeper import due_work, end_lifespan
from tests.plans.story import (
    fresh,
    past,
    pending,
    status_of,
    submitted,
    wish,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("refund")]


def outlived() -> list[uuid.UUID]:
    """What the sweep would end now."""
    return [work.pk for work in due_work() if work.act is end_lifespan]


def outlive(intent: Intent) -> None:
    Intent.objects.filter(pk=intent.pk).update(lives_until=clock() - timedelta(seconds=1))


@pytest.mark.parametrize("status", ["verifying", "pending", "approved"])
def test_an_outlived_intent_ends_by_the_clock(status: str, make_plan: Callable[..., Plan]) -> None:
    plan = make_plan(status)
    assert outlived() == []
    end_lifespan(plan.intent_id)
    assert fresh(plan).status == status
    outlive(plan.intent)
    assert outlived() == [plan.intent_id]
    end_lifespan(plan.intent_id)
    plan = fresh(plan)
    assert (plan.status, plan.token, plan.intent.closed_reason) == ("abandoned", None, "expiry")
    event = Event.objects.get(action="plan.abandoned")
    assert (event.actor_id, event.details["reason"]) == ("clock", "expiry")
    assert outlived() == []


@pytest.mark.parametrize("waiting", ["queued", "leased", "parked"])
def test_an_outlived_intent_that_waits_for_a_plan_ends(waiting: str, support_agent: Agent) -> None:
    plan = past(pending(support_agent))
    expiry.expire(plan.pk)
    Replan.objects.update(status=waiting)
    outlive(plan.intent)
    for pk in outlived():
        end_lifespan(pk)
    assert (Replan.objects.get().status, status_of(plan.intent)) == ("cancelled", "abandoned")


@pytest.mark.parametrize("status", ["committing", "unknown", "unresolved", "committed"])
def test_a_lifespan_never_touches_what_may_have_been_sent(
    status: str, make_plan: Callable[..., Plan]
) -> None:
    plan = make_plan(status)
    Attempt.objects.create(plan=plan, number=1, lease_until=clock())
    Replan.objects.create(intent=plan.intent, cause="person", mode="server")
    outlive(plan.intent)
    for pk in outlived():
        end_lifespan(pk)
    assert (fresh(plan).status, fresh(plan).intent.status) == (status, "open")


def test_abandoned_before_it_was_planned(support_agent: Agent) -> None:
    intent = open_intent(support_agent, wish())
    outlive(intent)
    end_lifespan(intent.pk)
    assert status_of(intent) == "abandoned"
    plan = submitted(support_agent)
    abandon(plan, reason="other", note="", actor=actors.CLOCK)
    assert Replan.objects.get().status == Replan.Status.CANCELLED

"""A target that cannot be read proves nothing, and keeps nobody waiting for ever (T-2)."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from audit.models import Event
from plans import expiry
from plans.models import Agent, Replan, Target
from plans.status import Status
from plans.verification import verify
from tests.plans.planning_target import HANG_UP, PlanningTarget, Reply, always, dry_run
from tests.plans.story import at_once, fresh, past, read_again, read_back, submitted

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("refund")]


@pytest.mark.parametrize(
    "answer",
    [
        Reply(500, {"detail": "oops"}),
        Reply(503, None),
        Reply(401, {"detail": "who are you"}),
        Reply(302, {}, {"Location": "http://127.0.0.1:1/"}),
        Reply(204, b""),
        Reply(200, b"<html>Sign in</html>"),
        Reply(200, b""),
        Reply(200, [1]),
        Reply(200, b'{"plan_id":1,"plan_id":2}'),
        Reply(200, b'{"a":"' + b"x" * 300_000 + b'"}'),
        HANG_UP,
    ],
    ids=lambda reply: f"{reply.status}",
)
def test_an_answer_that_says_nothing_is_asked_for_again(
    answer: Reply, support_agent: Agent, planning: PlanningTarget
) -> None:
    dry = dry_run()
    plan = submitted(support_agent, dry)
    planning.script["read"] = lambda _: answer
    verify(plan.pk)
    plan = fresh(plan)
    assert (plan.status, plan.verify_tries) == (Status.VERIFYING, 1)
    assert plan.verify_at is not None
    assert plan.verify_at > plan.received_at + timedelta(seconds=10)
    del planning.script["read"]
    planning.knows(dry)
    assert read_again(plan).status == Status.PENDING


@pytest.mark.parametrize("covers", ["invoice/4412", [7], ["x" * 301], [""]])
def test_covers_that_cannot_be_stored_are_no_answer(
    covers: Any, support_agent: Agent, planning: PlanningTarget
) -> None:
    assert read_back(support_agent, planning, covers=covers).status == Status.VERIFYING


def test_a_target_that_stays_away_lets_the_plan_expire(
    support_agent: Agent, billing: Target
) -> None:
    billing.base_url = "http://127.0.0.1:9"
    billing.save()
    plan = submitted(support_agent)
    verify(plan.pk)
    assert fresh(plan).status == Status.VERIFYING
    plan = past(plan)
    assert read_again(plan).status == Status.VERIFYING
    expiry.expire(plan.pk)
    plan = fresh(plan)
    assert (plan.status, plan.token) == (Status.EXPIRED, None)
    assert Replan.objects.get().cause == "expired"


def test_between_two_tries_nothing_is_asked(support_agent: Agent, planning: PlanningTarget) -> None:
    plan = submitted(support_agent)
    planning.script["read"] = always(500)
    verify(plan.pk)
    verify(plan.pk)
    assert len(planning.seen) == 1


def test_eight_workers_at_once_read_once(support_agent: Agent, planning: PlanningTarget) -> None:
    dry = dry_run()
    plan = submitted(support_agent, dry)
    planning.knows(dry)
    at_once([partial(verify, plan.pk)] * 8)
    assert len(planning.seen) == 1
    assert Event.objects.filter(action="plan.verified").count() == 1

"""What comes of one try to plan again: a plan, another try, the agent's turn, or the end (R-1)."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from audit import actors
from audit.models import Event
from plans import expiry
from plans.clock import clock
from plans.intents import intent_status, plan_again
from plans.models import Agent, Intent, Plan, Replan
from plans.replanning import run
from plans.status import Status
from tests.plans.planning_target import HANG_UP, PlanningTarget, Reply, always, dry_run, in_seconds
from tests.plans.story import due_now, fresh, past, pending

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("refund")]


@pytest.fixture
def dead(support_agent: Agent, planning: PlanningTarget) -> Plan:
    """A plan that expired while it waited for people; its re-plan is queued."""
    plan = past(pending(support_agent))
    expiry.expire(plan.pk)
    return fresh(plan)


def only(plan: Plan) -> Replan:
    return Replan.objects.select_related("intent").get(plan=plan)


@pytest.mark.parametrize("status", [401, 403, 408, 425, 429, 500, 502, 503, 504, 302, 201, 204])
def test_an_answer_about_the_moment_is_tried_again(
    status: int, dead: Plan, planning: PlanningTarget
) -> None:
    planning.script["dry_run"] = always(status, {"detail": "not now"})
    replan = only(dead)
    for tries, wait in enumerate((30, 120, 600, 1800, 1800), 1):
        assert run(due_now(replan).pk) is None
        replan.refresh_from_db()
        assert (replan.status, replan.mode, replan.tries) == ("queued", "server", tries)
        left = (replan.next_try_at - clock()).total_seconds()
        assert wait - 5 < left <= wait
        if status not in (500, 429):
            break
    assert run(replan.pk) is None
    assert len(planning.calls("dry_run")) == replan.tries
    assert Event.objects.filter(action="replan.failed_try").count() == replan.tries


@pytest.mark.parametrize(
    "answer",
    [
        HANG_UP,
        Reply(200, b"<html>"),
        Reply(200, []),
        Reply(200, {"plan_id": "x"}),
        Reply(200, {**dry_run(), "expires_at": in_seconds(-5)}),
        Reply(200, {**dry_run(), "actions": []}),
        Reply(200, {**dry_run(), "plan_token": None}),
    ],
    ids=range(7),
)
def test_an_answer_that_is_no_plan_is_tried_again(
    answer: Reply, dead: Plan, planning: PlanningTarget
) -> None:
    planning.script["dry_run"] = lambda _: answer
    replan = only(dead)
    assert run(replan.pk) is None
    replan.refresh_from_db()
    assert (replan.status, replan.mode, replan.tries) == ("queued", "server", 1)
    assert replan.last_error


@pytest.mark.parametrize("status", [400, 404, 405, 409, 410, 418, 422])
def test_a_refusal_hands_the_wish_to_its_agent(
    status: int, dead: Plan, planning: PlanningTarget
) -> None:
    words = "Only 280.00 are left. Ask with billing-token-of-the-tests."
    planning.script["dry_run"] = always(status, {"code": "too-much", "detail": words})
    replan = only(dead)
    assert run(replan.pk) is None
    replan.refresh_from_db()
    assert (replan.status, replan.mode, replan.lease) == ("queued", "agent", None)
    assert replan.reason.startswith(f"billing answered {status}: Only 280.00 are left.")
    assert "billing-token-of-the-tests" not in replan.reason
    assert Event.objects.get(action="replan.handed_to_agent").details["code"] == "too-much"


@pytest.mark.parametrize("body", [{"code": "nothing-to-change"}, {"type": "x/nothing-to-change"}])
def test_nothing_to_change_settles_the_intent(
    body: dict[str, str], dead: Plan, planning: PlanningTarget
) -> None:
    planning.script["dry_run"] = always(422, body)
    assert run(only(dead).pk) is None
    intent = Intent.objects.get()
    assert (intent.status, intent_status(intent, fresh(dead))) == ("settled", "settled")
    event = Event.objects.get(action="intent.settled")
    assert (event.actor_kind, event.intent_id) == ("target", intent.pk)
    assert only(dead).status == Replan.Status.DONE


def test_a_settled_intent_leaves_nothing_to_approve(
    support_agent: Agent, planning: PlanningTarget, ada: User
) -> None:
    plan = pending(support_agent)
    replan = plan_again(plan.intent, actor=actors.person(ada))
    planning.script["dry_run"] = always(422, {"code": "nothing-to-change"})
    run(replan.pk)
    assert fresh(plan).status == Status.STALE
    assert Replan.objects.count() == 1

"""Intents: opened by an agent, planned by the app, ended by people or by time (A-12, R-3)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User

from audit import actors
from audit.models import Event
from plans import expiry, replanning
from plans.clock import clock
from plans.errors import NoteRequired, NotReplannable, Problem
from plans.intents import give_up, open_intent, plan_again
from plans.lifecycle import Verb
from plans.models import Agent, Intent, Operation, Plan, Replan
from plans.status import Status
from plans.verification import verify
from tests.plans.planning_target import PlanningTarget, always
from tests.plans.story import (
    INPUTS,
    at_once,
    due_now,
    moved,
    past,
    pending,
    row_counts,
    status_of,
    wish,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("refund")]


def test_what_is_wanted_is_stored_and_its_first_dry_run_queued(support_agent: Agent) -> None:
    intent = open_intent(support_agent, wish(summary="Refund", reason="Broken"))
    intent.refresh_from_db()
    assert (bytes(intent.inputs), intent.summary, intent.reason) == (INPUTS, "Refund", "Broken")
    replan = Replan.objects.get()
    assert (replan.intent_id, replan.plan_id, replan.cause) == (intent.pk, None, "first")
    assert list(replanning.due(timedelta(0))) == [replan.pk]
    event = Event.objects.get()
    assert (event.action, event.actor_kind, event.intent_id) == (
        "intent.opened",
        "agent",
        intent.pk,
    )
    assert status_of(intent) == "open"


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"target": "nowhere"}, "unknown-target"),
        ({"operation": "delete"}, "unknown-operation"),
        ({"inputs_value": {"amount_cents": 0}}, "inputs-invalid"),
    ],
)
def test_a_wish_that_cannot_be_is_refused(
    members: dict[str, object], code: str, support_agent: Agent
) -> None:
    before = row_counts()
    with pytest.raises(Problem) as refusal:
        open_intent(support_agent, wish(**members))
    assert (refusal.value.code, row_counts()) == (code, before)


@pytest.mark.django_db(transaction=True)
def test_the_app_plans_it_and_the_plan_waits_for_people(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    Operation.objects.update(replan="agent")
    intent = open_intent(support_agent, wish(inputs=b' {"invoice_id":"4412","amount_cents":48000}'))
    pk = replanning.run(Replan.objects.get().pk)
    assert pk is not None
    verify(pk)
    plan = Plan.objects.get()
    assert (plan.pk, plan.status, plan.revision, plan.replaces_id) == (pk, "pending", 1, None)
    assert planning.calls("dry_run")[0].body == bytes(intent.inputs)
    intent.refresh_from_db()
    assert (intent.latest_revision, intent.unattended_replans) == (1, 0)
    assert status_of(intent) == "open"


@pytest.mark.django_db(transaction=True)
def test_a_first_dry_run_that_is_refused_fails_the_intent(
    support_agent: Agent, planning: PlanningTarget, ada: User
) -> None:
    planning.script["dry_run"] = always(422, {"code": "paid-out", "detail": "Paid out."})
    intent = open_intent(support_agent, wish())
    replanning.run(Replan.objects.get().pk)
    assert status_of(intent) == "failed"
    assert intent.closed_reason == "billing answered 422: Paid out."
    assert Event.objects.get(action="intent.failed").details["code"] == "paid-out"
    del planning.script["dry_run"]
    again = plan_again(intent, actor=actors.person(ada))
    assert status_of(intent) == "open"
    assert (again.cause, again.mode) == ("first", "server")
    assert replanning.run(again.pk) is not None


@pytest.mark.django_db(transaction=True)
def test_a_target_that_is_away_is_no_refusal(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    planning.script["dry_run"] = always(503)
    intent = open_intent(support_agent, wish())
    replan = Replan.objects.get()
    replanning.run(replan.pk)
    assert (status_of(intent), Replan.objects.get().status) == ("open", "queued")
    del planning.script["dry_run"]
    assert replanning.run(due_now(replan).pk) is not None


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("verifying", "open"),
        ("pending", "open"),
        ("approved", "open"),
        ("committing", "open"),
        ("unknown", "open"),
        ("unresolved", "unresolved"),
        ("committed", "committed"),
        ("rejected", "rejected"),
        ("failed", "failed"),
        ("mismatched", "failed"),
        ("expired", "open"),
        ("conflicted", "open"),
        ("stale", "open"),
        ("changes_requested", "open"),
    ],
)
def test_an_intent_says_what_its_latest_plan_came_to(
    status: str, told: str, make_plan: Callable[..., Plan]
) -> None:
    intent = make_plan(status).intent
    assert status_of(intent) == told
    Intent.objects.update(status=Intent.Status.ABANDONED)
    lasting = ("committing", "unknown", "unresolved", "committed")
    assert status_of(intent) == (told if status in lasting else "abandoned")


# ── a person plans again, or gives up ────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", ["rejected", "failed", "mismatched", "pending", "conflicted"])
def test_a_person_has_it_planned_again(
    status: str, make_plan: Callable[..., Plan], ada: User
) -> None:
    plan = make_plan(status)
    Intent.objects.update(unattended_replans=2)
    replan = plan_again(plan.intent, actor=actors.person(ada))
    assert (replan.status, replan.cause, replan.mode) == ("queued", "person", "server")
    assert replan.plan_id == (None if status == "pending" else plan.pk)
    assert Intent.objects.get().unattended_replans == 0
    event = Event.objects.get(action="replan.queued")
    assert (event.actor_kind, event.actor_label) == ("person", "ada")
    assert plan_again(plan.intent, actor=actors.person(ada)).pk == replan.pk


@pytest.mark.parametrize(
    "status",
    ["verifying", "approved", "committing", "unknown", "unresolved", "committed", "abandoned"],
)
def test_what_is_under_way_or_done_is_not_planned_again(
    status: str, make_plan: Callable[..., Plan], ada: User
) -> None:
    plan = make_plan(status)
    with pytest.raises(NotReplannable):
        plan_again(plan.intent, actor=actors.person(ada))
    assert not Replan.objects.exists()


def test_planning_again_hurries_what_backs_off(support_agent: Agent, ada: User) -> None:
    plan = past(pending(support_agent))
    expiry.expire(plan.pk)
    Replan.objects.update(next_try_at=clock() + timedelta(minutes=30), tries=4, mode="agent")
    replan = plan_again(plan.intent, actor=actors.person(ada))
    # The target had refused and the agent was asked: a person may try the target once more.
    assert (replan.mode, list(replanning.due(timedelta(0)))) == ("server", [replan.pk])


def test_a_reviewers_wish_stays_with_the_agent(support_agent: Agent, ada: User) -> None:
    plan = moved(pending(support_agent), Verb.REQUEST_CHANGES)
    assert plan_again(plan.intent, actor=actors.person(ada)).mode == "agent"


def test_planning_again_leaves_a_running_try_alone(support_agent: Agent, ada: User) -> None:
    plan = past(pending(support_agent))
    expiry.expire(plan.pk)
    running = replanning._claim(Replan.objects.get().pk)
    assert running is not None
    replan = plan_again(plan.intent, actor=actors.person(ada))
    assert (replan.status, replan.lease) == ("leased", running.lease)


@pytest.mark.django_db(transaction=True)
def test_eight_people_at_once_queue_one(make_plan: Callable[..., Plan], ada: User) -> None:
    plan = make_plan(Status.FAILED)
    results = at_once([partial(plan_again, plan.intent, actor=actors.person(ada))] * 8)
    assert len({r.pk for r in results if isinstance(r, Replan)}) == 1
    assert Replan.objects.count() == 1


def test_giving_up_needs_a_reason_and_ends_all_of_it(support_agent: Agent, ada: User) -> None:
    plan = past(pending(support_agent))
    expiry.expire(plan.pk)
    with pytest.raises(NoteRequired):
        give_up(plan.intent, actor=actors.person(ada), note="  ")
    give_up(plan.intent, actor=actors.person(ada), note=" not worth it ")
    assert status_of(plan.intent) == "abandoned"
    assert Replan.objects.get().status == Replan.Status.CANCELLED
    event = Event.objects.get(action="intent.abandoned")
    assert event.details == {"reason": "given up", "note": "not worth it"}
    with pytest.raises(NotReplannable):
        give_up(plan.intent, actor=actors.person(ada), note="again")
    with pytest.raises(NotReplannable):
        plan_again(plan.intent, actor=actors.person(ada))

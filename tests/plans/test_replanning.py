"""Dead plans come back by themselves, one plan each (R-1 … R-3)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from audit import actors
from audit.models import Event
from plans import expiry, replanning
from plans.clock import clock
from plans.intents import intent_status, plan_again
from plans.lifecycle import Verb
from plans.models import Agent, Intent, Operation, Plan, Replan
from plans.replanning import run
from plans.status import Status
from plans.verification import verify
from tests.plans.planning_target import PlanningTarget, Reply, Seen, always, dry_run
from tests.plans.story import (
    at_once,
    fresh,
    moved,
    past,
    pending,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("refund")]


@pytest.fixture
def dead(support_agent: Agent, planning: PlanningTarget) -> Plan:
    """A plan that expired while it waited for people; its re-plan is queued."""
    plan = past(pending(support_agent, reason="Broken"))
    expiry.expire(plan.pk)
    return fresh(plan)


def only(plan: Plan) -> Replan:
    return Replan.objects.select_related("intent").get(plan=plan)


def made_by(replan_pk: int) -> Plan:
    """Run it; the new plan."""
    pk = run(replan_pk)
    assert pk is not None
    return Plan.objects.with_names().get(pk=pk)


# ── R-1: one row per dead plan ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "verb", "mode"),
    [
        (Status.PENDING, Verb.EXPIRE, "server"),
        (Status.COMMITTING, Verb.CONFLICT, "server"),
        (Status.PENDING, Verb.MARK_STALE, "server"),
        (Status.PENDING, Verb.REQUEST_CHANGES, "agent"),
    ],
)
def test_a_dead_plan_queues_one_replan_in_the_same_transaction(
    status: Status, verb: Verb, mode: str, make_plan: Callable[..., Plan]
) -> None:
    plan = moved(make_plan(status), verb, replan_reason="why")
    replan = only(plan)
    assert (replan.cause, replan.mode, replan.status) == (plan.status, mode, "queued")
    assert (replan.reason, replan.tries) == ("why", 0)
    with pytest.raises(IntegrityError), transaction.atomic():
        Replan.objects.create(
            intent=plan.intent, plan=plan, cause="person", mode=mode, status="done"
        )


@pytest.mark.parametrize("verb", [Verb.REJECT, Verb.ABANDON, Verb.SUPERSEDE])
def test_a_plan_that_was_closed_on_purpose_queues_none(
    verb: Verb, make_plan: Callable[..., Plan]
) -> None:
    moved(make_plan(Status.PENDING), verb)
    assert not Replan.objects.exists()


def test_an_agents_operation_is_planned_by_its_agent(make_plan: Callable[..., Plan]) -> None:
    Operation.objects.update(replan="agent")
    replan = only(moved(make_plan(Status.PENDING), Verb.EXPIRE))
    assert (replan.mode, run(replan.pk), list(replanning.due(timedelta(0)))) == ("agent", None, [])


# ── R-2: the next revision ───────────────────────────────────────────────────────────────────


def test_the_server_repeats_the_stored_inputs_byte_for_byte(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    text = b'{ "invoice_id":\t"\\u0034412",\n"amount_cents":48000 }'
    plan = past(pending(support_agent, inputs=text))
    expiry.expire(plan.pk)
    new = made_by(only(plan).pk)
    (call,) = planning.calls("dry_run")
    assert (call.method, call.path, call.body) == ("POST", "/refund/dry_run", text)
    assert call.headers["authorization"] == "Bearer billing-token-of-the-tests"
    assert bytes(new.inputs) == text


def test_the_new_plan_is_linked_both_ways(dead: Plan) -> None:
    replan = only(dead)
    new = made_by(replan.pk)
    replan.refresh_from_db()
    assert (new.intent_id, new.revision, new.replaces_id) == (dead.intent_id, 2, dead.pk)
    assert fresh(dead).replaced_by.pk == new.pk
    assert (replan.status, replan.new_plan_id, replan.lease) == ("done", new.pk, None)
    assert replan.finished_at is not None
    assert (new.status, new.approvals_given, new.reason) == (Status.VERIFYING, 0, "Broken")
    assert new.idempotency_key != dead.idempotency_key
    event = Event.objects.get(action="plan.submitted", plan_id=new.plan_id)
    assert (event.actor_id, event.details["replaces"]) == ("replanner", dead.plan_id)
    verify(new.pk)
    assert fresh(new).status == Status.PENDING


def test_an_old_plan_stays_approvable_until_its_successor_arrives(
    support_agent: Agent, planning: PlanningTarget, ada: User
) -> None:
    plan = pending(support_agent)
    replan = plan_again(plan.intent, actor=actors.person(ada))
    assert fresh(plan).status == Status.PENDING
    new = made_by(replan.pk)
    plan = fresh(plan)
    assert (plan.status, plan.token, new.replaces_id) == (Status.SUPERSEDED, None, plan.pk)


@pytest.mark.parametrize("verb", [Verb.APPROVE, Verb.REJECT])
def test_a_decision_meanwhile_outranks_the_fresh_plan(
    verb: Verb, support_agent: Agent, planning: PlanningTarget, ada: User
) -> None:
    plan = pending(support_agent)
    replan = plan_again(plan.intent, actor=actors.person(ada))

    def meanwhile(_: Seen) -> Reply:
        moved(plan, verb)
        return Reply(200, dry_run())

    planning.script["dry_run"] = meanwhile
    assert run(replan.pk) is None
    assert Plan.objects.count() == 1
    assert Replan.objects.get().status == Replan.Status.CANCELLED


def test_a_plan_id_that_is_known_is_a_failed_try(dead: Plan, planning: PlanningTarget) -> None:
    planning.script["dry_run"] = always(200, dry_run(plan_id=dead.plan_id))
    replan = only(dead)
    assert run(replan.pk) is None
    replan.refresh_from_db()
    assert (replan.status, replan.tries) == ("queued", 1)
    assert "known already" in replan.last_error


def test_a_token_that_the_target_repeats_is_masked(dead: Plan, planning: PlanningTarget) -> None:
    dry = dry_run()
    token, key = dry["plan_token"], "billing-token-of-the-tests"
    dry["actions"][0]["link"] = f"/commit?token={token}"
    planning.script["dry_run"] = always(200, {**dry, "debug": [token, key], token: 1})
    new = made_by(only(dead).pk)
    stored = bytes(new.document).decode() + json.dumps(new.actions)
    assert "[token removed]" in stored
    assert token not in stored
    assert key not in stored


# ── leases ───────────────────────────────────────────────────────────────────────────────────


def test_a_lapsed_lease_is_taken_over(dead: Plan, planning: PlanningTarget) -> None:
    replan = only(dead)
    assert replanning._claim(replan.pk)
    assert run(replan.pk) is None
    assert list(replanning.due(timedelta(0))) == []
    Replan.objects.update(lease_until=dead.received_at)
    assert list(replanning.due(timedelta(0))) == [replan.pk]
    assert made_by(replan.pk).revision == 2


def test_a_runner_that_lost_its_lease_says_nothing(dead: Plan, planning: PlanningTarget) -> None:
    replan, new = only(dead), []

    def slow(_: Seen) -> Reply:
        Replan.objects.update(lease_until=dead.received_at)
        del planning.script["dry_run"]
        new.append(made_by(replan.pk))
        return Reply(500)

    planning.script["dry_run"] = slow
    assert run(replan.pk) is None
    replan.refresh_from_db()
    assert (replan.status, replan.new_plan_id, replan.tries) == ("done", new[0].pk, 0)


def test_eight_runners_at_once_make_one_plan(dead: Plan, planning: PlanningTarget) -> None:
    results = at_once([partial(run, only(dead).pk)] * 8)
    assert len([r for r in results if r is not None]) == 1
    assert (Plan.objects.count(), len(planning.calls("dry_run"))) == (2, 1)


# ── R-3: parked ──────────────────────────────────────────────────────────────────────────────


def lapse(plan: Plan) -> Replan:
    verify(plan.pk)
    expiry.expire(past(plan).pk)
    return only(plan)


def test_after_three_unattended_replans_the_intent_is_parked(
    dead: Plan, planning: PlanningTarget, ada: User
) -> None:
    replan = only(dead)
    for revision in (2, 3, 4):
        assert replan.status == Replan.Status.QUEUED
        new = made_by(replan.pk)
        assert new.revision == revision
        replan = lapse(new)
    intent = Intent.objects.get()
    assert (replan.status, intent.status) == ("parked", "parked")
    assert intent_status(intent, fresh(new)) == "parked"
    assert (run(replan.pk), list(replanning.due(timedelta(0)))) == (None, [])
    assert Event.objects.filter(action="intent.parked").count() == 1
    opened = plan_again(intent, actor=actors.person(ada))
    assert (opened.pk, opened.status) == (replan.pk, "queued")
    assert made_by(replan.pk).revision == 5
    assert Intent.objects.get().status == Intent.Status.OPEN


def test_an_agent_that_plans_again_and_again_is_parked_too(support_agent: Agent) -> None:
    Operation.objects.update(replan="agent")
    plan = pending(support_agent)
    for _ in range(3):
        expiry.expire(past(plan).pk)
        plan = pending(support_agent, replan_id=only(plan).pk)
    expiry.expire(past(plan).pk)
    assert only(plan).status == Replan.Status.PARKED


def test_a_decision_starts_the_count_again(support_agent: Agent, planning: PlanningTarget) -> None:
    plan = pending(support_agent)
    Intent.objects.update(unattended_replans=3)
    plan = moved(moved(plan, Verb.APPROVE, approved_at=clock()), Verb.START_ATTEMPT)
    conflicted = moved(plan, Verb.CONFLICT)
    new = made_by(only(conflicted).pk)
    assert Intent.objects.get().unattended_replans == 0
    assert lapse(new).status == Replan.Status.QUEUED

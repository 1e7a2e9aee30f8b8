"""Re-plans that the agent makes, over REST: claim, complete, give back (A-13, R-1)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from approvals.decisions import Ballot, decide
from audit.actors import CLOCK
from audit.models import Event
from plans.clock import clock
from plans.envelopes import ClaimOut
from plans.intents import plan_again
from plans.lifecycle import Verb, transition
from plans.models import Agent, Intent, Operation, Plan, Replan
from tests.plans.api_calls import INPUTS, TOKEN, Api, dry_run, submission
from tests.plans.story import at_once, pending

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("refund")]


@pytest.fixture
def dead(support_agent: Agent, ada: User) -> Plan:
    """Ada asked for changes; the agent is to make the next plan."""
    plan = pending(support_agent, reason="Broken")
    return decide(ada, plan.pk, Ballot("request_changes", "Only March, please.", plan.digest))


def claimed(api: Api, **body: Any) -> Any:
    answer = api.post("/replans/claim", body)
    assert answer.status_code == 200, answer.content
    ClaimOut.model_validate(answer.json())
    return answer.json()


def none(api: Api, **body: Any) -> bool:
    answer = api.post("/replans/claim", body)
    return (answer.status_code, answer.content) == (204, b"")


def test_a_claim_tells_what_was_asked_and_what_the_reviewer_said(api: Api, dead: Plan) -> None:
    work = claimed(api)
    assert (work["cause"], work["mode"], work["status"]) == ("changes_requested", "agent", "leased")
    assert work["reason"] == "Only March, please."
    assert work["asked"] == {"inputs": INPUTS, "summary": "", "reason": "Broken"}
    assert (work["target"], work["operation"], work["task_id"]) == ("billing", "refund", "task-1")
    assert (work["intent_id"], work["tries"]) == (str(dead.intent_id), 1)
    plan = work["plan"]
    assert (plan["plan_id"], plan["status"]) == (dead.plan_id, "changes_requested")
    decision = plan["decision"]
    assert (decision["verdict"], decision["by"]) == ("request_changes", "ada")
    assert decision["note"] == "Only March, please."
    assert plan["next_action"] == "replan"


def test_a_conflict_tells_what_moved(api: Api, support_agent: Agent) -> None:
    Operation.objects.update(replan="agent")
    plan = pending(support_agent)
    conflict = {
        "changed": [{"path": "refunded_cents", "planned": 0, "current": 20000}],
        "plan_created_at": "2026-03-14T09:41:12Z",
    }
    with transaction.atomic():
        for verb in (Verb.APPROVE, Verb.START_ATTEMPT):
            transition(Plan.objects.locked(plan.pk), verb, actor=CLOCK)
        row = Plan.objects.locked(plan.pk)
        transition(row, Verb.CONFLICT, actor=CLOCK, conflict=conflict)
    work = claimed(api)
    assert (work["cause"], work["plan"]["commit"]["conflict"]) == ("conflicted", conflict)


def test_one_replan_is_lent_to_one_claim(api: Api, dead: Plan) -> None:
    first = claimed(api)
    lease = Replan.objects.get().lease_until
    assert lease is not None
    assert timedelta(seconds=55) < lease - clock() <= timedelta(seconds=60)
    assert none(api)
    # Claiming the same one again renews its lease, and is no other try.
    assert claimed(api, replan_id=first["id"])["tries"] == 1
    renewed = Replan.objects.get().lease_until
    assert renewed is not None
    assert renewed > lease


def test_a_lapsed_lease_is_lent_again(api: Api, dead: Plan) -> None:
    first = claimed(api)
    Replan.objects.update(lease_until=clock() - timedelta(seconds=1))
    assert claimed(api)["id"] == first["id"]


@pytest.mark.django_db(transaction=True)
def test_eight_claims_at_once_lend_it_once(api: Api, dead: Plan) -> None:
    answers = at_once([partial(api.post, "/replans/claim", {})] * 8)
    statuses = sorted(a.status_code for a in answers if not isinstance(a, Exception))
    assert statuses == [200] + [204] * 7


def test_nothing_is_lent_to_others(api: Api, stranger: Api, dead: Plan) -> None:
    number = Replan.objects.get().pk
    assert none(stranger)
    assert none(stranger, replan_id=number)
    answer = stranger.post(f"/replans/{number}/failure", {"reason": "mine now"})
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown-replan")
    body = submission("pl_2", replan_id=number)
    assert stranger.post("/plans", body).json()["code"] == "unknown-replan"
    assert Replan.objects.get().status == "queued"


@pytest.mark.parametrize("status", ["parked", "done", "cancelled"])
def test_what_does_not_wait_for_the_agent_is_not_lent(api: Api, dead: Plan, status: str) -> None:
    Replan.objects.update(status=status)
    number = Replan.objects.get().pk
    assert none(api)
    assert none(api, replan_id=number)
    assert api.post(f"/replans/{number}/failure", {"reason": "no"}).status_code == 422
    assert Replan.objects.get().status == status


def test_a_servers_replan_is_not_lent(api: Api, support_agent: Agent, ada: User) -> None:
    plan_again(pending(support_agent).intent, actor=CLOCK)
    assert Replan.objects.get().mode == "server"
    assert none(api)


def test_a_parked_one_is_lent_when_a_person_wants_it(
    api: Api, dead: Plan, support_agent: Agent
) -> None:
    Replan.objects.update(status="parked")
    Intent.objects.update(status="parked")
    assert api.get(f"/intents/{dead.intent_id}").json()["status"] == "parked"
    plan_again(dead.intent, actor=CLOCK)
    assert claimed(api)["status"] == "leased"
    assert api.get(f"/intents/{dead.intent_id}").json()["status"] == "open"


def test_a_plan_with_its_number_completes_it(api: Api, dead: Plan) -> None:
    work = claimed(api)
    less = '{"amount_cents":20000,"invoice_id":"4412"}'
    body = submission("pl_2", replan_id=work["id"], inputs=less, reason="March only.")
    answer = api.post("/plans", body)
    assert answer.status_code == 201, answer.content
    new = answer.json()
    assert (new["revision"], new["replaces"]) == (2, dead.plan_id)
    assert new["intent_id"] == str(dead.intent_id)
    old = api.get(f"/plans/billing/{dead.plan_id}").json()
    assert (old["replaced_by"], old["replan"]["status"], old["next_action"]) == (
        *("pl_2", "done", "stop"),
    )
    intent = api.get(f"/intents/{dead.intent_id}").json()
    assert intent["asked"] == {"inputs": less, "summary": "", "reason": "March only."}
    assert (intent["changed"]["cause"], intent["plan"]["plan_id"]) == ("changes_requested", "pl_2")
    assert none(api)
    # The answer was lost: the same again finds what is here.
    assert api.post("/plans", body).status_code == 200
    second = api.post("/plans", submission("pl_3", replan_id=work["id"]))
    assert (second.status_code, second.json()["code"]) == (409, "replan-not-held")


def test_without_a_lease_the_answer_counts_too(api: Api, dead: Plan) -> None:
    """Whoever was slow, and whose lease lapsed, still has the plan that was asked for."""
    number = Replan.objects.get().pk
    assert api.post("/plans", submission("pl_2", replan_id=number)).status_code == 201


def test_giving_it_back_needs_a_reason_and_offers_it_later(api: Api, dead: Plan) -> None:
    work = claimed(api)
    path = f"/replans/{work['id']}/failure"
    for reason, code in (("", "invalid-field"), (" \n", "invalid-field"), (None, "invalid-field")):
        assert api.post(path, {"reason": reason}).json()["code"] == code
    answer = api.post(path, {"reason": "The carrier's system is down."})
    assert answer.status_code == 200, answer.content
    members = answer.json()
    assert (members["status"], members["last_error"]) == (
        *("queued", "The carrier's system is down."),
    )
    assert none(api)
    event = Event.objects.get(action="replan.failed_try")
    assert (event.actor_kind, event.agent, event.plan_id) == ("agent", "support-agent", "")
    fault = "The carrier's system is down."
    assert event.details == {"tries": 1, "fault": fault, "next_in_seconds": 30}
    Replan.objects.update(next_try_at=clock() - timedelta(seconds=1))
    assert claimed(api)["tries"] == 2


def test_what_fails_again_and_again_is_offered_less_often(api: Api, dead: Plan) -> None:
    """R-3."""
    for wait in (30, 120, 600, 1800, 1800):
        work = claimed(api)
        api.post(f"/replans/{work['id']}/failure", {"reason": "not yet"})
        left = (Replan.objects.get().next_try_at - clock()).total_seconds()
        assert wait - 5 < left <= wait
        Replan.objects.update(next_try_at=clock() - timedelta(seconds=1))


@pytest.mark.parametrize("number", ["0", "9999999"])
def test_what_is_not_there_cannot_be_given_back(api: Api, dead: Plan, number: str) -> None:
    answer = api.post(f"/replans/{number}/failure", {"reason": "no"})
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown-replan")


def test_a_key_needs_the_scope(
    dead: Plan, support_agent: Agent, make_api_key: Callable[..., str]
) -> None:
    reader = Api(make_api_key(support_agent, "plans:read", "plans:write"))
    for path, body in (("/replans/claim", {}), ("/replans/1/failure", {"reason": "no"})):
        answer = reader.post(path, body)
        assert (answer.status_code, answer.json()["code"]) == (403, "missing-scope")


def test_no_token_is_lent_with_the_work(api: Api, support_agent: Agent, ada: User) -> None:
    plan = pending(support_agent, dry_run("pl_1"))
    decide(ada, plan.pk, Ballot("request_changes", "no", plan.digest))
    assert TOKEN not in api.post("/replans/claim", {}).content.decode()

"""Forms that are not as their page made them, or whose page is not true any more: BI-40 … BI-46."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import Decision
from audit.models import Event
from plans.models import Operation
from tests.approvals.decision_form import (
    PROBLEM,
    address,
    code_of,
    now,
    vote,
)
from tests.approvals.paper_plans import MakePlan

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"shown_digest": None}, 428, "digest-missing"),
        ({"shown_digest": ""}, 428, "digest-missing"),
        ({"shown_digest": "0" * 64}, 412, "digest-mismatch"),
        ({"shown_digest": "upper"}, 412, "digest-mismatch"),
        ({"shown_digest": "spaced"}, 412, "digest-mismatch"),
        ({"verdict": "reject"}, 422, "note-required"),
        ({"verdict": "reject", "note": " \n\t "}, 422, "note-required"),
        ({"verdict": "request_changes"}, 422, "note-required"),
        ({"note": "x" * 4001}, 422, "invalid-note"),
        ({"note": "x" * 100_000}, 422, "invalid-note"),
        ({"note": "a\0b"}, 422, "invalid-note"),
        ({"verdict": "maybe"}, 422, "invalid-field"),
        ({"verdict": "\0"}, 422, "invalid-field"),
        ({"verdict": ""}, 422, "invalid-field"),
        ({"verdict": None}, 422, "invalid-field"),
        ({"verdict": ["approve", "reject"]}, 422, "invalid-field"),
        ({"amount": "1"}, 422, "unknown-field"),
        ({"actions": "[]"}, 422, "unknown-field"),
        ({"approved_by": "grace"}, 422, "unknown-field"),
        ({"_method": "post"}, 422, "unknown-field"),
        ({"plan_id": "plan_other"}, 422, "id-mismatch"),
        ({"target": "payouts"}, 422, "id-mismatch"),
        ({"shown_at": "forged"}, 422, "invalid-field"),
    ],
)
def test_a_faulty_form_is_refused_and_decides_nothing(
    client: Client, ada: User, make_plan: MakePlan, fields: dict[str, Any], status: int, code: str
) -> None:
    plan = make_plan()
    spelt = {"upper": plan.digest.upper(), "spaced": f" {plan.digest} "}
    if fields.get("shown_digest") in spelt:
        fields = fields | {"shown_digest": spelt[fields["shown_digest"]]}
    response = vote(client, ada, plan, **fields)
    assert (response.status_code, code_of(response)) == (status, code)
    assert "Nothing was decided." in response.text
    assert 'name="verdict"' in response.text
    problem = vote(client, ada, plan, **fields, headers=PROBLEM)
    assert (problem.status_code, problem.json()["code"]) == (status, code)
    assert problem["Content-Type"] == "application/problem+json"
    assert now(plan).status == "pending"
    assert not Decision.objects.exists()


def test_what_the_address_repeats_may_be_repeated(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    assert vote(client, ada, plan, plan_id=plan.plan_id, target="billing").status_code == 303


def test_the_digest_of_another_plan_does_not_count(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan, other = make_plan(), make_plan()
    assert vote(client, ada, plan, shown_digest=other.digest).status_code == 412


def test_what_was_typed_survives_a_refusal(client: Client, ada: User, make_plan: MakePlan) -> None:
    note = '</textarea><script>alert("x")</script>'
    response = vote(client, ada, make_plan(), note=note, shown_digest="")
    assert "&lt;/textarea&gt;&lt;script&gt;" in response.text
    assert "<script>alert" not in response.text


def test_a_page_from_before_a_change_is_refused_with_the_change_marked(
    client: Client, ada: User, make_plan: MakePlan, refund: Operation
) -> None:
    plan = make_plan()
    client.force_login(ada)
    page = client.get(address(plan, "")).text
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    Operation.objects.filter(pk=refund.pk).update(
        title="Give back {delta.refunded_cents:money:USD} on {object}"
    )
    response = client.post(address(plan), fields | {"verdict": "approve"})
    assert response.status_code == 412
    assert "Not as it was when you opened this page: the title." in response.text
    assert '<header class="head changed">' in response.text
    assert "Give back 480.00 USD on invoice/4412" in response.text
    fresh = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', response.text))
    assert client.post(address(plan), fresh | {"verdict": "approve"}).status_code == 303


def test_an_unchanged_world_is_approvable_after_the_configuration_moved(
    client: Client, ada: User, make_plan: MakePlan, refund: Operation
) -> None:
    """The page and the stored assessment agree, though the plan was verified before the edit."""
    plan = make_plan()
    Operation.objects.filter(pk=refund.pk).update(title="Other words on {object}")
    client.force_login(ada)
    page = client.get(address(plan, "")).text
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    assert client.post(address(plan), fields | {"verdict": "approve"}).status_code == 303
    assert now(plan).title == "Other words on invoice/4412"


def test_a_risk_that_was_raised_meanwhile_asks_for_its_confirmation(
    client: Client, ada: User, make_plan: MakePlan, refund: Operation
) -> None:
    plan = make_plan()
    Operation.objects.filter(pk=refund.pk).update(risk="critical")
    client.force_login(ada)
    page = client.get(address(plan, "")).text
    assert 'data-confirm="480.00 USD"' in page
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    form = fields | {"verdict": "approve"}
    assert client.post(address(plan), form).status_code == 422
    assert client.post(address(plan), form | {"confirm": "480.00 USD"}).status_code == 303


def test_a_form_that_is_refused_leaves_an_event(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    response = vote(client, ada, make_plan(), amount="1")
    assert response.status_code == 422
    event = Event.objects.get(action="decision.refused")
    assert (event.actor_label, event.details["code"]) == ("ada", "unknown-field")
    assert event.details["verdict"] == "approve"

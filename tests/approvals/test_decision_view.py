"""Deciding through the browser's form, and where it leads: B-1 … B-4, B-9."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import Decision
from plans.models import Operation, Target
from tests.approvals.decision_form import (
    HTMX,
    address,
    code_of,
    now,
    vote,
)
from tests.approvals.paper_plans import MakePlan

pytestmark = pytest.mark.django_db


def test_an_approval_leads_to_the_next_plan_of_my_queue(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan, following = make_plan(), make_plan()
    response = vote(client, ada, plan)
    assert response.status_code == 303
    assert response["Location"] == address(following, "")
    assert now(plan).status == "approved"
    decision = Decision.objects.get()
    assert (decision.person, decision.verdict) == (ada, "approve")
    assert decision.shown_digest == plan.digest


def test_the_last_approval_leads_to_the_empty_queue(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    response = vote(client, ada, make_plan())
    assert (response.status_code, response["Location"]) == (303, "/review/")


def test_htmx_gets_the_next_plan_with_its_address(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan, following = make_plan(), make_plan()
    response = vote(client, ada, plan, headers=HTMX)
    assert response.status_code == 200
    assert response["HX-Push-Url"] == address(following, "")
    assert "decided" in response["HX-Trigger"]
    assert f'data-plan="{following.plan_id}"' in response.text
    assert "<html" not in response.text


def test_htmx_is_sent_to_the_empty_queue(client: Client, ada: User, make_plan: MakePlan) -> None:
    response = vote(client, ada, make_plan(), headers=HTMX)
    assert response["HX-Redirect"] == "/review/"


@pytest.mark.parametrize(
    ("verdict", "status"), [("reject", "rejected"), ("request_changes", "changes_requested")]
)
def test_one_refusal_with_a_note_closes_the_plan(
    client: Client, ada: User, make_plan: MakePlan, verdict: str, status: str
) -> None:
    plan = make_plan()
    assert vote(client, ada, plan, verdict, note="  too much \U0001f642 \u05d0 ").status_code == 303
    assert now(plan).status == status
    assert Decision.objects.get().note == "too much \U0001f642 \u05d0"


def test_the_hidden_fields_of_the_page_are_accepted(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    client.force_login(ada)
    page = client.get(address(plan, "")).text
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    assert {"csrfmiddlewaretoken", "shown_digest", "shown_at"} <= fields.keys()
    response = client.post(address(plan), fields | {"verdict": "approve", "note": ""})
    assert response.status_code == 303
    assert now(plan).status == "approved"


@pytest.mark.parametrize("method", ["get", "head", "options", "put", "delete", "patch"])
def test_only_a_post_decides(client: Client, ada: User, make_plan: MakePlan, method: str) -> None:
    client.force_login(ada)
    plan = make_plan()
    response = getattr(client, method)(
        f"{address(plan)}?verdict=approve&shown_digest={plan.digest}&_method=post",
        headers={"X-HTTP-Method-Override": "POST"},
    )
    assert response.status_code == 405
    assert now(plan).status == "pending"


def test_a_form_without_its_token_decides_nothing(ada: User, make_plan: MakePlan) -> None:
    plan = make_plan()
    strict = Client(enforce_csrf_checks=True)
    assert vote(strict, ada, plan).status_code == 403
    assert now(plan).status == "pending"


def test_an_api_key_decides_nothing(client: Client, api_key: str, make_plan: MakePlan) -> None:
    plan = make_plan()
    response = client.post(
        address(plan),
        {"verdict": "approve", "shown_digest": plan.digest},
        headers={"Authorization": f"Bearer {api_key}"},
    )
    assert response.status_code == 403
    assert now(plan).status == "pending"


def test_nobody_decides_without_signing_in(client: Client, make_plan: MakePlan) -> None:
    plan = make_plan()
    response = client.post(address(plan), {"verdict": "approve", "shown_digest": plan.digest})
    assert response.status_code == 302
    assert now(plan).status == "pending"


def test_an_unverified_plan_is_approved_only_where_its_target_allows_it(
    client: Client, ada: User, make_plan: MakePlan, billing: Target
) -> None:
    plan = make_plan(verification="unavailable")
    assert vote(client, ada, plan).status_code == 403
    Target.objects.filter(pk=billing.pk).update(allow_unverified=True)
    assert vote(client, ada, plan).status_code == 303


@pytest.mark.parametrize(
    ("typed", "status"),
    [
        (None, 422),
        ("", 422),
        ("yes", 422),
        ("48000", 422),
        ("480.00 USD", 303),
        (" 480.00  USD ", 303),
    ],
)
def test_a_critical_plan_is_approved_with_a_value_typed_from_it(
    client: Client,
    ada: User,
    make_plan: MakePlan,
    refund: Operation,
    typed: str | None,
    status: int,
) -> None:
    refund.risk = "critical"
    refund.save()
    response = vote(client, ada, make_plan(), confirm=typed)
    assert response.status_code == status
    if status == 422:
        assert code_of(response) == "confirmation-mismatch"


def test_a_critical_plan_is_rejected_without_typing(
    client: Client, ada: User, make_plan: MakePlan, refund: Operation
) -> None:
    refund.risk = "critical"
    refund.save()
    assert vote(client, ada, make_plan(), "reject", note="no").status_code == 303

"""An approval that is taken back through its form (B-9)."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from plans.clock import clock
from plans.models import Attempt, Plan
from tests.approvals.decision_form import (
    address,
    code_of,
    now,
    vote,
    withdraw,
)
from tests.approvals.paper_plans import MakePlan

pytestmark = pytest.mark.django_db


def test_an_approval_is_withdrawn_before_anything_was_sent(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    vote(client, ada, plan)
    response = withdraw(client, ada, plan)
    assert (response.status_code, response["Location"]) == (303, address(plan, ""))
    assert now(plan).status == "rejected"
    page = client.get(address(plan, "")).text
    assert "Withdrawn at" in page


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"note": " "}, 422, "note-required"),
        ({"verdict": "approve"}, 422, "unknown-field"),
        ({"plan_id": "x"}, 422, "id-mismatch"),
    ],
)
def test_a_faulty_withdrawal_changes_nothing(
    client: Client, ada: User, make_plan: MakePlan, fields: dict[str, str], status: int, code: str
) -> None:
    plan = make_plan()
    vote(client, ada, plan)
    response = withdraw(client, ada, plan, **fields)
    assert (response.status_code, code_of(response)) == (status, code)
    assert now(plan).status == "approved"


def test_nobody_withdraws_what_others_approved_or_what_was_sent(
    client: Client, ada: User, grace: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    vote(client, ada, plan)
    assert withdraw(client, grace, plan).status_code == 403
    Attempt.objects.create(plan=plan, number=1, lease_until=clock())
    Plan.objects.filter(pk=plan.pk).update(status="committing")
    assert code_of(withdraw(client, ada, plan)) == "commit-in-flight"

"""Whether the recorded approvals still carry the send (T-3, SEC-8, FM-49)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.models import Decision
from approvals.oversight import ReviewOversight
from plans.models import Operation, Plan
from plans.oversight import oversight

pytestmark = pytest.mark.django_db
type MakePlan = Callable[..., Plan]

REVIEW = ReviewOversight()


def approve(plan: Plan, person: User, **columns: Any) -> Decision:
    values = {"round": plan.round, "verdict": "approve", "shown_digest": plan.digest} | columns
    return Decision.objects.create(plan=plan, person=person, **values)


def test_the_deciding_app_introduces_itself() -> None:
    assert isinstance(oversight(), ReviewOversight)


def test_one_reviewer_s_approval_is_enough(make_plan: MakePlan, ada: User) -> None:
    plan = make_plan(status="approved")
    approve(plan, ada)
    assert REVIEW.objection_to_sending(plan) is None


def test_nothing_is_sent_without_an_approval(make_plan: MakePlan) -> None:
    objection = REVIEW.objection_to_sending(make_plan(status="approved"))
    assert objection == "0 of 1 approvals were given on what is shown now."


@pytest.mark.parametrize(
    "columns",
    [{"verdict": "reject"}, {"round": 7}, {"shown_digest": "0" * 64}],
)
def test_other_rows_are_no_approval(
    make_plan: MakePlan, ada: User, columns: dict[str, Any]
) -> None:
    plan = make_plan(status="approved")
    approve(plan, ada, **columns)
    assert REVIEW.objection_to_sending(plan)


def test_an_approver_who_left_does_not_count(make_plan: MakePlan, ada: User) -> None:
    plan = make_plan(status="approved")
    approve(plan, ada)
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert REVIEW.objection_to_sending(plan) == "ada approved, but is not active any more."


def test_an_approver_who_lost_the_group_does_not_count(make_plan: MakePlan, ada: User) -> None:
    plan = make_plan(status="approved")
    approve(plan, ada)
    ada.groups.clear()
    objection = REVIEW.objection_to_sending(plan)
    assert objection == "ada approved, but does not review billing any more."


def test_the_agent_s_owner_does_not_count(make_plan: MakePlan, dana: User) -> None:
    plan = make_plan(status="approved")
    approve(plan, dana)
    assert REVIEW.objection_to_sending(plan) == "dana approved, but owns support-agent."


def test_a_person_in_two_groups_counts_once(make_plan: MakePlan, grace: User) -> None:
    plan = make_plan(status="approved")
    plan.target.reviewers.set(grace.groups.all())
    Plan.objects.filter(pk=plan.pk).update(approvals_required=2)
    plan.refresh_from_db()
    approve(plan, grace)
    assert REVIEW.objection_to_sending(plan)


@pytest.mark.parametrize(
    "columns", [{"risk": "critical"}, {"title": "Other words"}, {"formats": {}}]
)
def test_what_was_approved_must_be_what_would_be_sent(
    make_plan: MakePlan, ada: User, columns: dict[str, Any]
) -> None:
    plan = make_plan(status="approved")
    approve(plan, ada)
    Operation.objects.filter(pk=plan.operation_id).update(**columns)
    plan = Plan.objects.with_names().get(pk=plan.pk)
    objection = REVIEW.objection_to_sending(plan)
    assert objection == "What was approved is not what would be sent now."


def test_the_check_costs_two_queries(
    make_plan: MakePlan, ada: User, django_assert_num_queries: Any
) -> None:
    plan = make_plan(status="approved")
    approve(plan, ada)
    with django_assert_num_queries(2):
        REVIEW.objection_to_sending(plan)


@pytest.mark.parametrize(
    ("configured", "verification", "risk"),
    [
        ("low", "verified", "low"),
        ("critical", "verified", "critical"),
        ("low", "unavailable", "high"),
        ("critical", "unavailable", "critical"),
    ],
)
def test_without_read_back_the_risk_is_at_least_high(
    make_plan: MakePlan, refund: Operation, configured: str, verification: str, risk: str
) -> None:
    refund.risk = configured
    refund.save()
    assert make_plan(verification=verification).risk == risk


def test_it_tells_the_latest_verdict(make_plan: MakePlan, ada: User, grace: User) -> None:
    plan = make_plan()
    assert REVIEW.last_decisions([plan]) == {}
    approve(plan, ada)
    decision = approve(plan, grace, verdict="reject", note="not twice")
    decision.refresh_from_db()
    assert REVIEW.last_decisions([plan])[plan.pk] == {
        "verdict": "reject",
        "note": "not twice",
        "by": "grace",
        "at": decision.decided_at,
    }

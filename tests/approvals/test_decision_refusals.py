"""Decisions that come too late, again, or from somebody else (B-3, B-4, B-9)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import Decision
from audit.models import Event
from plans.clock import clock
from plans.models import Replan
from tests.approvals.decision_form import (
    HTMX,
    PROBLEM,
    address,
    code_of,
    now,
    vote,
)
from tests.approvals.paper_plans import MakePlan

pytestmark = pytest.mark.django_db


@pytest.mark.fm(55)
def test_the_same_person_s_repeat_shows_the_plan(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    make_plan()
    vote(client, ada, plan)
    response = vote(client, ada, plan)
    assert (response.status_code, response["Location"]) == (303, address(plan, ""))
    assert Decision.objects.count() == 1


def test_somebody_else_comes_too_late_and_hears_who_decided(
    client: Client, ada: User, grace: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    vote(client, ada, plan)
    response = vote(client, grace, plan, "reject", note="no")
    assert (response.status_code, code_of(response)) == (409, "already-decided")
    assert "<b><bdi>ada</bdi></b> approved it first, at" in response.text
    assert "Your decision was not recorded." in response.text
    body = vote(client, grace, plan, "reject", note="no", headers=PROBLEM).json()
    assert (body["decided_by"], body["verdict"]) == ("ada", "approve")
    assert now(plan).status == "approved"


def test_a_second_thought_of_the_same_person_is_no_second_decision(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    vote(client, ada, plan)
    assert vote(client, ada, plan, "reject", note="no").status_code == 409


def test_a_plan_whose_time_is_over_is_gone(client: Client, ada: User, make_plan: MakePlan) -> None:
    plan = make_plan(decide_by=clock() - timedelta(milliseconds=1))
    response = vote(client, ada, plan)
    assert (response.status_code, code_of(response)) == (410, "plan-expired")
    assert response["Cache-Control"] == "no-store"
    assert "being planned again" in response.text
    assert now(plan).status == "expired"
    assert Replan.objects.filter(plan=plan).exists()


@pytest.mark.fm(42)
def test_a_superseded_plan_leads_to_its_successor(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    old = make_plan(status="superseded", closed_at=clock())
    new = make_plan(intent=old.intent, revision=2, replaces=old)
    response = vote(client, ada, old)
    assert (response.status_code, code_of(response)) == (409, "superseded")
    assert f'href="{address(new, "")}"' in response.text


def test_a_plan_in_flight_is_not_decided_again(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    response = vote(client, ada, make_plan(status="committing"))
    assert (response.status_code, code_of(response)) == (409, "commit-in-flight")


@pytest.mark.parametrize("person", ["dana", "mona"])
def test_who_may_read_but_not_decide_is_refused(
    request: pytest.FixtureRequest, client: Client, make_plan: MakePlan, person: str
) -> None:
    plan = make_plan()
    response = vote(client, request.getfixturevalue(person), plan)
    assert (response.status_code, code_of(response)) == (403, "not-allowed")
    assert now(plan).status == "pending"
    assert Event.objects.filter(action="decision.refused", plan_id=plan.plan_id).exists()


def test_a_stranger_finds_nothing_to_decide_on(
    client: Client, charlie: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    assert vote(client, charlie, plan).status_code == 404
    assert now(plan).status == "pending"


def test_htmx_gets_a_refusal_as_a_part(client: Client, ada: User, make_plan: MakePlan) -> None:
    plan = make_plan()
    again = vote(client, ada, plan, "reject", headers=HTMX)
    assert (again.status_code, code_of(again)) == (422, "note-required")
    assert "<html" not in again.text
    vote(client, ada, plan)
    late = vote(client, ada, plan, "reject", note="no", headers=HTMX)
    assert (late.status_code, code_of(late)) == (409, "already-decided")
    assert "<html" not in late.text

"""An agent that no longer wants its plan says so (A-8)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from plans.clock import clock
from plans.models import Plan
from tests.plans.api_calls import Api
from tests.plans.ways import VERBS, follow

pytestmark = pytest.mark.django_db


def test_an_open_plan_is_abandoned_with_its_intent(api: Api, plan: Plan) -> None:
    answer = api.post("/plans/billing/pl_1/abandonment", {"reason": "task_end", "note": "over"})
    assert answer.status_code == 200
    members = answer.json()
    assert (members["status"], members["abandonment"]) == ("abandoned", "abandoned")
    assert members["next_action"] == "stop"
    plan.refresh_from_db()
    assert plan.token is None
    again = api.post("/plans/billing/pl_1/abandonment", {"reason": "other"})
    assert (again.status_code, again.json()["status"]) == (200, "abandoned")


def test_a_committed_plan_stays_as_it_is(api: Api, plan: Plan) -> None:
    follow(plan, *VERBS["committed"])
    answer = api.post("/plans/billing/pl_1/abandonment", {"reason": "other"})
    assert (answer.status_code, answer.json()["status"]) == (200, "committed")
    assert answer.json()["abandonment"] == "already_closed"


def test_a_plan_in_flight_is_only_noted(api: Api, plan: Plan) -> None:
    plan = follow(plan, *VERBS["committing"])
    plan.attempts.create(number=1, lease_until=clock() + timedelta(minutes=1))
    answer = api.post("/plans/billing/pl_1/abandonment", {"reason": "other"})
    assert (answer.status_code, answer.json()["status"]) == (202, "committing")
    assert answer.json()["abandonment"] == "abandon_noted"

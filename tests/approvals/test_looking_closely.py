"""What makes a reviewer look before approving: every change opened, a value typed, a long look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import Decision, Policy
from approvals.policies.demands import Demands, Match, added_up
from approvals.policies.tallies import tally
from audit.actions import Action
from audit.models import Event
from plans.models import Operation, Plan
from plans.status import Status

type MakePlan = Callable[..., Plan]

pytestmark = pytest.mark.django_db


@pytest.fixture
def opened_first(make_plan: MakePlan) -> Plan:
    """A plan of two changes, each of which a policy wants opened."""
    Policy.objects.create(name="look closely", when="true", expand_first=True)
    return make_plan()


def approve(client: Client, plan: Plan, **fields: Any) -> Any:
    form = {"verdict": "approve", "note": "", "shown_digest": plan.digest} | fields
    return client.post(f"/plans/billing/{plan.plan_id}/decision/", form)


@pytest.mark.parametrize(
    ("opened", "status", "verdict"),
    [
        ([], 422, "approve"),
        (["0"], 422, "approve"),
        (["1", "1"], 422, "approve"),
        (["0", "1"], 303, "approve"),
        ([], 303, "reject"),
    ],
)
def test_a_policy_wants_every_change_opened(
    client: Client, ada: User, opened_first: Plan, opened: list[str], status: int, verdict: str
) -> None:
    client.force_login(ada)
    answer = approve(client, opened_first, opened=opened, verdict=verdict, note="seen")
    assert answer.status_code == status
    assert Decision.objects.filter(opened=verdict == "approve").count() == (status == 303)
    if status == 422:
        assert 'data-code="changes-not-opened"' in answer.text
        assert Event.objects.filter(action=Action.DECISION_REFUSED).count() == 1
        # What was opened stays open.
        assert answer.text.count("data-opened open") == len(set(opened))


def test_the_page_has_a_box_for_each_change_without_scripts(
    client: Client, ada: User, opened_first: Plan
) -> None:
    client.force_login(ada)
    page = client.get(f"/plans/billing/{opened_first.plan_id}/").text
    for number in "01":
        assert f'form="decision" name="opened" value="{number}"' in page
    assert "every change opened, one by one" in page


def test_an_approval_from_before_such_a_policy_does_not_count(
    ada: User, grace: User, opened_first: Plan
) -> None:
    given = Decision.objects.create(
        plan=opened_first, person=ada, round=1, verdict="approve", shown_digest=opened_first.digest
    )
    counted = tally(opened_first, Demands.of(opened_first), opened_first.digest)
    assert counted.given == 0
    assert "did not open every change" in counted.faults[given.pk]


def test_such_a_policy_has_a_version_of_its_own() -> None:
    """The digest of every waiting plan hangs on it (B-2)."""
    versions = [
        added_up([Match(Policy(name="a", when="true", expand_first=first))]).version
        for first in (False, True)
    ]
    assert versions[0] != versions[1]


@pytest.mark.parametrize("typed", ["", "yes", "480.00", "480.00 EUR"])
def test_a_wrong_confirmation_leaves_only_the_refusal(
    client: Client, ada: User, make_plan: MakePlan, refund: Operation, typed: str
) -> None:
    Operation.objects.filter(pk=refund.pk).update(risk="critical")
    plan = make_plan(operation=Operation.objects.get(pk=refund.pk))
    client.force_login(ada)
    answer = client.post(
        f"/plans/billing/{plan.plan_id}/decision/",
        {"verdict": "approve", "note": "", "shown_digest": plan.digest, "confirm": typed},
        headers={"Accept": "application/problem+json"},
    )
    assert answer.status_code == 422
    assert answer.json()["code"] == "confirmation-mismatch"
    assert answer.json()["errors"][0]["pointer"] == "/confirm"
    assert list(Event.objects.values_list("action", flat=True)) == [Action.DECISION_REFUSED]
    assert not Decision.objects.exists()
    assert Plan.objects.get(pk=plan.pk).status == Status.PENDING


def test_a_look_that_was_too_short_goes_on_where_it_was(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    Policy.objects.create(name="slowly", when="true", dwell_seconds=10)
    plan = make_plan()
    client.force_login(ada)
    page = client.get(f"/plans/billing/{plan.plan_id}/").text
    assert 'data-dwell-ms="10000"' in page
    token = page.split('name="shown_at" value="')[1].split('"')[0]
    answer = approve(client, plan, shown_at=token)
    assert answer.status_code == 422
    assert 'data-code="decided-too-soon"' in answer.text
    assert f'name="shown_at" value="{token}"' in answer.text
    left = int(answer.text.split('data-dwell-ms="')[1].split('"')[0])
    assert 0 < left < 10_000

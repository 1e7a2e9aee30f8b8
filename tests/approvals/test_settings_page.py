"""What operators see of the installation, and what nobody ever sees."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import Policy
from approvals.policies.demands import Match, added_up
from audit.models import Event
from plans.clock import clock
from plans.models import Agent, Operation, Target
from tests.approvals.paper_plans import MakePlan


def test_operators_see_targets_operations_agents_and_keys(
    client: Client, otto: User, refund: Operation, api_key: str
) -> None:
    client.force_login(otto)
    page = client.get("/settings/").text
    for words in ("billing", "refund", "support-agent", "dana", "reviewers", "sending"):
        assert words in page
    key_id = api_key.split("_")[1]
    assert f"cs_{key_id}_…" in page


def test_policies_are_read_with_what_they_ask_for(client: Client, otto: User) -> None:
    large = Policy.objects.create(
        name="large <refunds>",
        when='operation == "refund" && delta.refunded_cents >= 100000',
        require=[{"group": "reviewers", "count": 2}, {"group": "leads", "count": 1}],
        note_required=True,
        step_up=True,
        dwell_seconds=10,
        raise_risk="critical",
    )
    Policy.objects.create(name="nights", when="true", deny=True, active=False)
    Policy.objects.create(name="any", when="true")
    client.force_login(otto)
    page = client.get("/settings/").text
    for words in (
        "large &lt;refunds&gt;",
        "operation == &quot;refund&quot; &amp;&amp; delta.refunded_cents &gt;= 100000",
        "1 of leads and 2 of reviewers; a note; a sign-in within the last five minutes; "
        "a look of at least 10 s; its risk is at least critical",
        "nobody can approve it",
        "one reviewer of the target",
        added_up([Match(large)]).version,
        '<span class="badge quiet">off</span>',
    ):
        assert words in page
    assert page.index("nights") > page.index("large")


def test_the_version_of_a_policy_is_that_of_a_plan_that_it_alone_matches(
    client: Client, otto: User, make_plan: MakePlan
) -> None:
    Policy.objects.create(name="large", when="delta.refunded_cents > 1")
    Policy.objects.create(name="other", when="delta.refunded_cents < 1")
    plan = make_plan()
    client.force_login(otto)
    assert plan.policy_version in client.get("/settings/").text


def test_a_condition_that_cel_refuses_is_named(client: Client, otto: User) -> None:
    Policy.objects.create(name="broken", when="delta.refunded_cents >=")
    client.force_login(otto)
    assert "is no CEL condition: line 1" in client.get("/settings/").text


def test_without_policies_the_page_says_what_holds(client: Client, otto: User) -> None:
    client.force_login(otto)
    assert (
        "Every plan needs one approval by a reviewer of its target."
        in client.get("/settings/").text
    )


def test_no_secret_is_on_the_page(
    client: Client, otto: User, refund: Operation, api_key: str
) -> None:
    client.force_login(otto)
    page = client.get("/settings/").text
    assert "billing-token-of-the-tests" not in page
    assert api_key.split("_")[2] not in page


@pytest.mark.parametrize("person", ["ada", "mona", "dana", "charlie"])
def test_nobody_else_sees_it(
    client: Client, request: pytest.FixtureRequest, billing: Target, person: str
) -> None:
    client.force_login(request.getfixturevalue(person))
    answer = client.get("/settings/")
    assert answer.status_code == 403
    assert "operators" in answer.text
    assert client.post("/targets/billing/trial/").status_code == 403


def test_a_stopped_target_can_be_tried_again(client: Client, otto: User, billing: Target) -> None:
    Target.objects.update(circuit_opened_at=clock(), circuit_reason="billing answered 401.")
    client.force_login(otto)
    assert "billing answered 401." in client.get("/settings/").text
    client.post("/targets/billing/trial/")
    billing.refresh_from_db()
    assert billing.circuit_opened_at is None
    assert Event.objects.get(action="circuit.closed").actor_label == "otto"
    client.post("/targets/billing/trial/")
    assert Event.objects.count() == 1


def test_more_targets_cost_no_more_queries(
    client: Client,
    otto: User,
    refund: Operation,
    support_agent: Agent,
    django_assert_max_num_queries: Callable[..., object],
) -> None:
    client.force_login(otto)
    for number in range(20):
        target = Target.objects.create(name=f"target-{number}", base_url="https://t.example")
        Operation.objects.create(target=target, name="write", dry_run_path="/d", commit_path="/c")
        Agent.objects.create(name=f"agent-{number}", owner=otto)
        Policy.objects.create(name=f"policy-{number}", when='risk == "low"')
    with django_assert_max_num_queries(19):  # type: ignore[attr-defined]  # a context manager
        assert client.get("/settings/").status_code == 200

"""What operators see of the installation, and what nobody ever sees."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from audit.models import Event
from plans.clock import clock
from plans.models import Agent, Operation, Target


def test_operators_see_targets_operations_agents_and_keys(
    client: Client, otto: User, refund: Operation, api_key: str
) -> None:
    client.force_login(otto)
    page = client.get("/settings/").text
    for words in ("billing", "refund", "support-agent", "dana", "reviewers", "sending"):
        assert words in page
    key_id = api_key.split("_")[1]
    assert f"cs_{key_id}_…" in page


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
    with django_assert_max_num_queries(17):  # type: ignore[attr-defined]  # a context manager
        assert client.get("/settings/").status_code == 200

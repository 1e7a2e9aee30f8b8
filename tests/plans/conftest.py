"""Plans that can be committed, and a target that does what the test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from approvals.decisions import Ballot, decide
from plans import custody
from plans.enrolment import commit_body
from plans.models import Agent, Operation, Plan, Target
from plans.oversight import oversight
from plans.status import Status
from tests.faults.scripted_target import ScriptedTarget
from tests.plans.api_calls import Api, submission
from tests.plans.config_files import Apply
from tests.plans.engine import TOKEN
from tests.plans.planning_target import PlanningTarget, running
from tests.plans.receiver import Line, listening


@pytest.fixture
def target() -> Iterator[ScriptedTarget]:
    """What billing is, on loopback."""
    with ScriptedTarget() as scripted:
        yield scripted


@pytest.fixture
def calls_in_the_tests_transaction(settings: Any) -> None:
    """For tests of one thread: rolling a transaction back is ten times faster than a flush."""
    settings.GATEWAY_ALLOW_IN_TRANSACTION = True


@pytest.fixture
def quick_billing(billing: Target, target: ScriptedTarget) -> Target:
    """Billing at the scripted target, with waits that a test can afford."""
    billing.base_url = target.base_url
    billing.connect_timeout_seconds = 0.4
    billing.read_timeout_seconds = 0.2
    billing.total_timeout_seconds = 0.4
    billing.save()
    return billing


@pytest.fixture
def pending(quick_billing: Target, make_plan: Callable[..., Plan]) -> Callable[..., Plan]:
    """`pending(**columns)`: a verified plan of 480.00 USD that people can decide on."""

    def make(**columns: Any) -> Plan:
        plan = make_plan(Status.PENDING, **columns)
        body = commit_body(TOKEN, plan.input_fingerprint)
        secrets = {"token": custody.encrypt(TOKEN.encode()), "commit_body": custody.encrypt(body)}
        seen = oversight().assess(Plan.objects.with_names().get(pk=plan.pk))
        Plan.objects.filter(pk=plan.pk).update(**secrets, **seen.columns())
        return Plan.objects.with_names().get(pk=plan.pk)

    return make


@pytest.fixture
def approved(pending: Callable[..., Plan], ada: User) -> Callable[..., Plan]:
    """`approved(**columns)`: the same, approved by Ada, its commit due now."""

    def make(**columns: Any) -> Plan:
        plan = pending(**columns)
        return decide(ada, plan.pk, Ballot("approve", "", plan.digest))

    return make


@pytest.fixture
def planning(billing: Target) -> Iterator[PlanningTarget]:
    """Billing's address is a target that makes plans, tells them and applies them."""
    with running() as target:
        billing.base_url = target.url
        billing.total_timeout_seconds = 5
        billing.save()
        yield target


@pytest.fixture
def line(support_agent: Agent, make_plan: Callable[..., Plan]) -> Iterator[Line]:
    """A webhook of the support agent, and a delivery of it that is due."""
    with listening(support_agent) as (receiver, webhook, secret):
        yield Line(receiver, webhook, secret, make_plan("committed"))


@pytest.fixture
def api(api_key: str, refund: Operation) -> Api:
    """The support agent over REST."""
    return Api(api_key)


@pytest.fixture
def plan(api: Api) -> Plan:
    """`pl_1` of the support agent, as it was submitted."""
    assert api.post("/plans", submission()).status_code == 201
    return Plan.objects.get()


@pytest.fixture
def stranger(dana: User, make_api_key: Callable[..., str], refund: Operation) -> Api:
    """Another agent, over REST."""
    agent = Agent.objects.create(name="other-agent", owner=dana, rate_tokens=600)
    return Api(make_api_key(agent))


@pytest.fixture
def apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apply:
    """`apply(text, *options)` writes the file, runs the command and returns what it printed."""
    monkeypatch.setenv("ADA_PASSWORD", "a password of Ada's")
    (tmp_path / "billing.token").write_text("billing-token-one\n")
    (tmp_path / "refund.inputs.json").write_text('{"type": "object"}')
    (tmp_path / "refund.result.json").write_text('{"type": "object", "minProperties": 1}')

    def run(text: str, *options: str) -> str:
        file = tmp_path / "config.toml"
        file.write_text(text)
        out = StringIO()
        call_command("apply_config", str(file), *options, stdout=out)
        return out.getvalue()

    return run

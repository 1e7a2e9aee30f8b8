"""Plans that can be committed, and a target that does what the test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.decisions import Ballot, decide
from audit.models import Event
from plans import custody
from plans.clock import clock
from plans.enrolment import commit_body
from plans.models import Attempt, Plan, Target
from plans.oversight import oversight
from plans.status import Status
from plans.sweeper import carry_out
from tests.faults.scripted_target import ScriptedTarget

TOKEN = "ptok_0123456789abcdef0123456789"


@pytest.fixture
def target() -> Iterator[ScriptedTarget]:
    """What billing is, on loopback."""
    with ScriptedTarget() as scripted:
        yield scripted


@pytest.fixture
def quick_billing(billing: Target, target: ScriptedTarget) -> Target:
    """Billing at the scripted target, with waits that a test can afford."""
    billing.base_url = target.base_url
    billing.connect_timeout_seconds = 0.4
    billing.read_timeout_seconds = 0.3
    billing.total_timeout_seconds = 0.5
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


def fresh(plan: Plan) -> Plan:
    return Plan.objects.with_names().get(pk=plan.pk)


def soon(plan: Plan) -> Plan:
    """Whatever the plan waits for is due now: a test does not sleep through a schedule."""
    past = clock() - timedelta(milliseconds=1)
    for mark in ("next_attempt_at", "next_read_at"):
        Plan.objects.filter(pk=plan.pk, **{f"{mark}__isnull": False}).update(**{mark: past})
    return fresh(plan)


def send(plan: Plan) -> Plan:
    """The next attempt now, and the read that it may call for; the plan as it is after."""
    soon(plan)
    carry_out(plan.pk)
    return fresh(plan)


def outcomes(plan: Plan) -> list[str]:
    return list(Attempt.objects.filter(plan=plan).values_list("outcome", flat=True))


def actions(plan: Plan) -> list[str]:
    """The words of the plan's events, in their order."""
    rows = Event.objects.filter(plan_id=plan.plan_id).order_by("id")
    return list(rows.values_list("action", flat=True))

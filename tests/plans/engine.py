"""Turning the engine by hand: a test does not sleep through a schedule."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from audit.models import Event
from plans.clock import clock
from plans.models import Attempt, Plan
from plans.resolving import resolve
from plans.status import Status
from plans.sweeper import carry_out
from tests.faults.scripted_target import ScriptedTarget

TOKEN = "ptok_0123456789abcdef0123456789"


def fresh(plan: Plan) -> Plan:
    return Plan.objects.with_names().get(pk=plan.pk)


def soon(plan: Plan) -> Plan:
    """Whatever the plan waits for is due now."""
    past = clock() - timedelta(milliseconds=1)
    for mark in ("next_attempt_at", "next_read_at"):
        Plan.objects.filter(pk=plan.pk, **{f"{mark}__isnull": False}).update(**{mark: past})
    return fresh(plan)


def send(plan: Plan) -> Plan:
    """The next attempt now, and the read that it may call for; the plan as it is after."""
    soon(plan)
    carry_out(plan.pk)
    return fresh(plan)


def read(plan: Plan) -> Plan:
    """The next read of an unknown plan's state now."""
    soon(plan)
    resolve(plan.pk)
    return fresh(plan)


def outcomes(plan: Plan) -> list[str]:
    return list(Attempt.objects.filter(plan=plan).values_list("outcome", flat=True))


def actions(plan: Plan) -> list[str]:
    """The words of the plan's events, in their order."""
    rows = Event.objects.filter(plan_id=plan.plan_id).order_by("id")
    return list(rows.values_list("action", flat=True))


def one_key_one_body(plan: Plan, target: ScriptedTarget, attempts: int) -> None:
    """T-1, T-9: never a new key, never another body; the Attempt header counts."""
    assert len(target.commits) == attempts
    assert target.keys() == {plan.idempotency_key}
    assert len(target.bodies()) == 1
    counted = [commit.headers["Attempt"] for commit in target.commits]
    assert counted == [str(number) for number in range(1, attempts + 1)]


def given_up(plan: Plan) -> Plan:
    """As if the time to find out were over (T-10)."""
    assert plan.status == Status.UNKNOWN
    Plan.objects.filter(pk=plan.pk).update(unknown_since=clock() - timedelta(days=1))
    return read(plan)


def said(plan: Plan, action: str) -> dict[str, Any]:
    event = Event.objects.filter(plan_id=plan.plan_id, action=action).latest("id")
    details: dict[str, Any] = event.details
    return details

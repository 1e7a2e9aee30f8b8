"""Turning the engine by hand: a test does not sleep through a schedule."""

from __future__ import annotations

from datetime import timedelta

from audit.models import Event
from plans.clock import clock
from plans.models import Attempt, Plan
from plans.resolving import resolve
from plans.sweeper import carry_out

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

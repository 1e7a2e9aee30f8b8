"""Policies that demand something, and approvals that meet it or are refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.decisions import Ballot, decide
from approvals.models import Policy
from audit.models import Event
from plans.models import Plan
from plans.problem import Problem

LARGE = 'operation == "refund" && delta.refunded_cents >= 48000'


def policy(name: str, when: str = LARGE, **columns: Any) -> Policy:
    require = [{"group": group, "count": n} for group, n in columns.pop("require", {}).items()]
    return Policy.objects.create(name=name, when=when, require=require, **columns)


def approve(person: User, plan: Plan, note: str = "", **columns: Any) -> Plan:
    return decide(person, plan.pk, Ballot("approve", note, plan.digest, **columns))


def refused(problem: type[Problem], person: User, plan: Plan, **columns: Any) -> Problem:
    with pytest.raises(problem) as refusal:
        approve(person, plan, **columns)
    assert Event.objects.filter(action="decision.refused").latest("id").details == {
        "verdict": "approve",
        "code": problem.code,
    }
    return refusal.value

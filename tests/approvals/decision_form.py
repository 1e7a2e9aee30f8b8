"""The forms of a plan's page, posted as a browser would, and what came of them."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from plans.models import Plan

PROBLEM = {"Accept": "application/problem+json"}
HTMX = {"HX-Request": "true"}


def address(plan: Plan, noun: str = "decision/") -> str:
    return f"/plans/{plan.target.name}/{plan.plan_id}/{noun}"


def vote(client: Client, person: User, plan: Plan, verdict: str = "approve", **fields: Any) -> Any:
    """Post the form as its page would; a field set to None is left out."""
    headers = fields.pop("headers", {})
    client.force_login(person)
    form = {"verdict": verdict, "note": "", "shown_digest": plan.digest} | fields
    sent = {name: value for name, value in form.items() if value is not None}
    return client.post(address(plan), sent, headers=headers)


def now(plan: Plan) -> Plan:
    return Plan.objects.with_names().get(pk=plan.pk)


def code_of(response: Any) -> str:
    found = re.search(r'data-code="([a-z-]+)"', response.text)
    return found[1] if found else ""


def withdraw(client: Client, person: User, plan: Plan, **fields: str) -> Any:
    client.force_login(person)
    return client.post(address(plan, "withdrawal/"), {"note": "second thoughts"} | fields)

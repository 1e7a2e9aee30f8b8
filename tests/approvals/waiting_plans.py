"""Plans as they wait in the queue: of any risk, in any number, decided by some."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User

from approvals.models import Decision
from plans.clock import clock
from plans.models import Intent, Plan

RANKS = {"critical": 0, "high": 1, "medium": 2, "low": 3}


def rated(plan: Plan, risk: str, seconds: float) -> Plan:
    """The plan with another risk and `seconds` left to decide, in a row of its own."""
    decide_by = clock() + timedelta(seconds=seconds)
    Plan.objects.filter(pk=plan.pk).update(
        risk=risk,
        risk_rank=RANKS[risk],
        decide_by=decide_by,
        title=f"{risk} in {seconds}",
        likeness="",
    )
    return plan


def copies(plan: Plan, number: int) -> None:
    """So many more plans like this one, each with an intent of its own."""
    intents = [copy_of(plan.intent) for _ in range(number)]
    Intent.objects.bulk_create(intents)
    there = Plan.objects.filter(plan_id__startswith="copy_").count()
    plans = [copy_of(plan, index, intent) for index, intent in enumerate(intents, there)]
    Plan.objects.bulk_create(plans)


def copy_of[M: (Intent, Plan)](row: M, index: int = 0, intent: Intent | None = None) -> M:
    copy = type(row).objects.get(pk=row.pk)
    if isinstance(copy, Intent):
        copy.pk = uuid.uuid4()
        return copy
    copy.pk, copy.intent = None, intent or copy.intent
    copy.plan_id, copy.idempotency_key = f"copy_{index:05d}", f"idem_copy_{index:05d}"
    # Each is to have a row of its own.
    copy.likeness = ""
    copy.decide_by += timedelta(milliseconds=index % 7)
    return copy


def decided(plan: Plan, person: User, **columns: Any) -> Decision:
    fields = {"round": plan.round, "verdict": "approve", "shown_digest": plan.digest} | columns
    return Decision.objects.create(plan=plan, person=person, **fields)

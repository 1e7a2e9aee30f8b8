"""Evidence that the agent finds later: its own words, never part of the digest (A-9)."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from audit import actors
from audit.actions import Action
from audit.recording import record
from plans import custody, errors
from plans.enrolment import EvidenceItem
from plans.hints import hint
from plans.models import Evidence, Plan

MAX_ITEMS: Final = 100


def add_evidence(plan: Plan, item: EvidenceItem) -> Evidence:
    """Store one more read beside the plan. Raises Problems (409, 422)."""
    with transaction.atomic():
        plan = Plan.objects.locked(plan.pk)
        if plan.is_terminal:
            raise errors.NotDecidable(plan_id=plan.plan_id, plan_status=plan.status)
        if plan.evidence.count() >= MAX_ITEMS:
            raise errors.InvalidField(f"A plan has at most {MAX_ITEMS} pieces of evidence.")
        _refuse_token(plan, item)
        stored = Evidence.objects.create(plan=plan, label=item.label, text=item.text, url=item.url)
        actor = actors.agent(plan.agent_id, plan.agent.name)
        record(Action.EVIDENCE_ADDED, actor, plan.subject(), {"label": item.label})
        hint()
        return stored


def _refuse_token(plan: Plan, item: EvidenceItem) -> None:
    if plan.token is None:
        return
    token = custody.decrypt(plan.token).decode()
    pointer = custody.find_token({"label": item.label, "text": item.text, "url": item.url}, token)
    if pointer is not None:
        raise errors.TokenElsewhere(pointer=pointer)

"""Intents that the app plans itself: it runs the dry run, no token passes the agent (A-12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import transaction

from audit import actors
from audit.actions import Action
from audit.recording import record
from plans.admission import admit
from plans.enrolment import INTENT_LIFESPAN
from plans.inspection import check_inputs
from plans.models import Agent, Intent, Operation, Plan, Replan
from plans.status import Status
from plans.submission import find_operation


@dataclass(frozen=True, slots=True)
class IntentRequest:
    """One `POST /intents`, parsed strictly; `inputs` is the exact text for the dry run."""

    target: str
    operation: str
    task_id: str
    inputs: bytes = field(repr=False)
    inputs_value: Mapping[str, Any] = field(repr=False)
    summary: str = ""
    reason: str = ""


def open_intent(agent: Agent, request: IntentRequest) -> Intent:
    """Store what is wanted and queue its first dry run. Raises Problems (A-17)."""
    operation = find_operation(request.target, request.operation)
    check_inputs(request.inputs_value, operation)
    with transaction.atomic():
        now = admit(agent)
        intent = Intent.objects.create(
            target=operation.target,
            operation=operation,
            agent=agent,
            task_id=request.task_id,
            inputs=request.inputs,
            summary=request.summary,
            reason=request.reason,
            lives_until=now + INTENT_LIFESPAN,
        )
        mode = Operation.ReplanMode.SERVER
        Replan.objects.create(intent=intent, cause=Replan.Cause.FIRST, mode=mode, next_try_at=now)
        actor = actors.agent(agent.pk, agent.name)
        record(Action.INTENT_OPENED, actor, intent.subject(), {"reason": request.reason})
    return intent


# What the latest plan says about its intent, where the intent's own status says nothing.
BY_PLAN: Final[Mapping[str, str]] = {
    Status.COMMITTED: "committed",
    Status.REJECTED: "rejected",
    Status.FAILED: "failed",
    Status.MISMATCHED: "failed",
    Status.UNRESOLVED: "unresolved",
}


def intent_status(intent: Intent, current: Plan | None) -> str:
    """open, committed, settled, rejected, failed, abandoned, parked or unresolved (A-12).

    What the target applied outranks what the agent wished: an intent abandoned in flight and
    then committed is committed.
    """
    if current is not None and current.status in (Status.COMMITTED, Status.UNRESOLVED):
        return BY_PLAN[current.status]
    if current is not None and current.status in (Status.COMMITTING, Status.UNKNOWN):
        return "open"
    if intent.status != Intent.Status.OPEN:
        return str(intent.status)
    if current is None or Replan.objects.waiting().filter(intent=intent).exists():
        return "open"
    return BY_PLAN.get(current.status, "open")

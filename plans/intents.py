"""The verbs on an intent: open one that the app plans itself, plan it again, end it (A-12, R-3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from audit import actors
from audit.actions import Action
from audit.actors import Actor
from audit.recording import record
from plans.abandonment import abandon_intent
from plans.admission import admit
from plans.clock import clock
from plans.enrolment import INTENT_LIFESPAN
from plans.errors import InvalidNote, NoteRequired, NotReplannable
from plans.inspection import check_inputs
from plans.models import Agent, Intent, Operation, Plan, Replan
from plans.notes import is_unfit
from plans.oversight import Wish
from plans.retrying import retried
from plans.status import Status
from plans.submission import find_operation, refuse_denied


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


@retried
def open_intent(agent: Agent, request: IntentRequest) -> Intent:
    """Store what is wanted and queue its first dry run. Raises Problems (A-17)."""
    operation = find_operation(request.target, request.operation)
    check_inputs(request.inputs_value, operation)
    refuse_denied(Wish(agent, operation, request.inputs_value))
    with transaction.atomic():
        now = admit(agent, request.task_id)
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


# A person may plan again what is closed without effect, and freshen what still waits.
PLAN_AGAIN: Final = frozenset(
    {
        Status.EXPIRED,
        Status.CONFLICTED,
        Status.STALE,
        Status.REJECTED,
        Status.FAILED,
        Status.MISMATCHED,
        Status.PENDING,
    }
)


@retried
def plan_again(intent: Intent, *, actor: Actor) -> Replan:
    """A person's "Plan again": un-parks, hurries, or queues a re-plan. Raises NotReplannable."""
    replan = _again(intent, actor, Replan.Cause.PERSON)
    assert replan is not None
    return replan


@retried
def freshen(intent: Intent, *, actor: Actor) -> Replan | None:
    """What the page of an ageing or parked plan asks for by itself when it is opened (R-3, R-4).

    None: nothing is due (any more), as when another reviewer's page was first.
    """
    return _again(intent, actor, Replan.Cause.OPENED)


def _again(intent: Intent, actor: Actor, cause: Replan.Cause) -> Replan | None:
    with transaction.atomic():
        intent = Intent.objects.locked(intent.pk)
        now = clock()
        # Whoever closes the latest plan queues its re-plan under that plan's lock: look after it.
        latest = Plan.objects.latest_locked(intent)
        waiting = Replan.objects.waiting().filter(intent=intent).first()
        opened = cause == Replan.Cause.OPENED
        if waiting is not None:
            idle = opened and waiting.status != Replan.Status.PARKED
            return waiting if idle else _hurry(intent, waiting, actor, now, opened=opened)
        if opened and not (latest and is_ageing(latest, now)):
            return None
        return _queue_for_person(intent, latest, actor, now, cause)


def is_ageing(plan: Plan, now: datetime) -> bool:
    """R-4: it waits, too little time is left to read it, and a fresh plan would have more."""
    fresh = timedelta(seconds=plan.target.fresh_for_seconds)
    window = plan.decide_by - plan.received_at
    return plan.status == Status.PENDING and plan.decide_by - now < fresh < window


def _hurry(intent: Intent, waiting: Replan, actor: Actor, now: datetime, *, opened: bool) -> Replan:
    """Run what waits, or is parked, now; what the target refused once is asked again (R-1)."""
    fixed = waiting.cause in (Replan.Cause.CHANGES_REQUESTED, Replan.Cause.FIRST)
    mode = waiting.mode if fixed else intent.operation.replan
    # Compare and set: a runner that takes its lease now holds no lock that we hold.
    idle = Replan.objects.filter(pk=waiting.pk).exclude(status=Replan.Status.LEASED)
    if idle.update(status=Replan.Status.QUEUED, next_try_at=now, mode=mode):
        intent.status, intent.unattended_replans = Intent.Status.OPEN, 0
        intent.save(update_fields=["status", "unattended_replans"])
        details = {"cause": waiting.cause, "mode": mode} | ({"opened": True} if opened else {})
        record(Action.REPLAN_QUEUED, actor, intent.subject(), details)
    waiting.refresh_from_db()
    return waiting


def _queue_for_person(
    intent: Intent, latest: Plan | None, actor: Actor, now: datetime, cause: Replan.Cause
) -> Replan:
    closed = intent.status in (Intent.Status.ABANDONED, Intent.Status.SETTLED)
    if closed or (latest is not None and latest.status not in PLAN_AGAIN):
        raise NotReplannable(plan_status=latest.status if latest else None)
    taken = latest is not None and Replan.objects.filter(plan=latest).exists()
    replan = Replan.objects.create(
        intent=intent,
        plan=latest if latest is not None and latest.is_terminal and not taken else None,
        cause=cause if latest else Replan.Cause.FIRST,
        # Without a plan the intent came from `open_intent`: its dry run is ours.
        mode=intent.operation.replan if latest else Operation.ReplanMode.SERVER,
        next_try_at=now,
    )
    intent.status, intent.unattended_replans = Intent.Status.OPEN, 0
    intent.save(update_fields=["status", "unattended_replans"])
    details: dict[str, Any] = {"cause": replan.cause, "mode": replan.mode}
    if latest is not None and cause == Replan.Cause.OPENED:
        details["seconds_left"] = max(0, int((latest.decide_by - now).total_seconds()))
    record(Action.REPLAN_QUEUED, actor, (latest or intent).subject(), details)
    return replan


@retried
def give_up(intent: Intent, *, actor: Actor, note: str) -> None:
    """A person ends an intent that waits for a re-plan (R-3).

    Raises NoteRequired, InvalidNote (422), NotReplannable (409).
    """
    note = note.strip()
    if not note:
        raise NoteRequired(pointer="/note")
    if is_unfit(note):
        raise InvalidNote(pointer="/note")
    with transaction.atomic():
        intent = Intent.objects.locked(intent.pk)
        end_intent(intent, actor=actor, reason="given up", note=note)


def end_intent(intent: Intent, *, actor: Actor, reason: str, note: str = "") -> None:
    """Abandon an intent that is still alive and not in flight. The caller holds its lock."""
    latest = Plan.objects.latest_locked(intent)
    if intent.status not in (Intent.Status.OPEN, Intent.Status.PARKED):
        raise NotReplannable(intent_status=intent.status)
    if latest is not None and (latest.status == Status.COMMITTED or latest.may_have_been_sent()):
        raise NotReplannable(plan_status=latest.status)
    abandon_intent(intent, reason=reason, note=note, actor=actor)

"""Abandoning an intent: its open plan, and every re-plan that waits for it (A-8, A-11, R-3)."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from audit.actions import Action
from audit.actors import Actor
from audit.recording import record
from plans import custody
from plans.errors import TokenElsewhere
from plans.lifecycle import Verb, transition
from plans.models import Intent, Plan, Replan
from plans.retrying import retried
from plans.status import Status


@retried
def abandon(plan: Plan, *, reason: str, note: str, actor: Actor) -> tuple[Plan, bool]:
    """End the plan's intent (A-8); True when a commit is in flight and the target decides.

    Cancels its re-plans in the same transaction. Repeating it changes nothing. Raises
    TokenElsewhere (422) for a note that holds the plan's token (A-18).
    """
    with transaction.atomic():
        intent = Intent.objects.locked(plan.intent_id)
        _refuse_token(Plan.objects.get(pk=plan.pk), note)
        _, in_flight = abandon_intent(intent, reason=reason, note=note, actor=actor)
    return Plan.objects.named(plan.pk), in_flight


def _refuse_token(plan: Plan, note: str) -> None:
    """The note goes into the trail, where nothing can be taken back."""
    token = custody.decrypt(plan.token).decode() if plan.token is not None else ""
    if custody.find_token(note, token) is not None:
        raise TokenElsewhere(pointer="/note")


def abandon_intent(
    intent: Intent, *, reason: str, note: str, actor: Actor
) -> tuple[Plan | None, bool]:
    """The intent's latest plan, and whether its commit is in flight. The caller holds the lock."""
    latest = Plan.objects.latest_locked(intent)
    in_flight = latest is not None and latest.may_have_been_sent()
    committed = latest is not None and latest.status == Status.COMMITTED
    over = intent.status in (Intent.Status.ABANDONED, Intent.Status.SETTLED)
    if committed or over:
        return latest, in_flight
    details = {"reason": reason, "note": note}
    intent.status, intent.closed_reason = Intent.Status.ABANDONED, reason
    intent.save(update_fields=["status", "closed_reason"])
    cancel_replans(intent, actor)
    if latest is not None and in_flight:
        record(Action.PLAN_ABANDON_NOTED, actor, latest.subject(), details)
        return latest, True
    return _close(intent, latest, actor, details), False


def _close(
    intent: Intent, latest: Plan | None, actor: Actor, details: dict[str, Any]
) -> Plan | None:
    if latest is not None and not latest.is_terminal:
        latest = transition(latest, Verb.ABANDON, actor=actor, details=details)
    subject = latest.subject() if latest is not None else intent.subject()
    record(Action.INTENT_ABANDONED, actor, subject, details)
    return latest


def cancel_replans(intent: Intent, actor: Actor) -> None:
    """Queued, leased and parked re-plans of the intent end here; a late answer finds them gone."""
    for replan in Replan.objects.waiting().filter(intent=intent):
        Replan.objects.filter(pk=replan.pk).update(status=Replan.Status.CANCELLED, lease=None)
        details = {"cause": replan.cause}
        record(Action.REPLAN_CANCELLED, actor, intent.subject(), details)

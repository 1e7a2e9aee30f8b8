"""A dead plan queues its re-plan in the transaction of its end (R-1, R-3)."""

from __future__ import annotations

from typing import Final

from audit.actions import Action
from audit.actors import Actor
from audit.recording import record
from plans.models import Intent, Operation, Plan, Replan
from plans.status import Status

# after so many re-plans that no person saw, the intent waits for one.
UNATTENDED_REPLANS: Final = 3
OVER: Final = (Intent.Status.ABANDONED, Intent.Status.SETTLED)


def queue_replan(plan: Plan, actor: Actor, reason: str) -> None:
    """One row per dead plan, unless the intent is over or such work already waits (R-1).

    The caller holds the plan's lock, and the intent's before it where the plan may be parked:
    when nobody has attended to it.
    """
    # Read now: what was joined to the plan may be older than the lock on it.
    intent = Intent.objects.get(pk=plan.intent_id)
    if intent.status in OVER:
        return
    if plan.status == Status.CHANGES_REQUESTED:
        # What waits repeats the inputs that the reviewer has just refused.
        cancel_waiting(plan, actor, reason="changes were requested")
    elif Replan.objects.waiting().filter(intent=intent).exists():
        return
    parked = _is_parked(plan, intent)
    replan = Replan.objects.create(
        intent=intent,
        plan=plan,
        cause=plan.status,
        mode=_mode(plan),
        status=Replan.Status.PARKED if parked else Replan.Status.QUEUED,
        reason=reason,
    )
    details = {"cause": replan.cause, "mode": replan.mode}
    record(Action.REPLAN_QUEUED, actor, plan.subject(), details)
    if parked:
        Intent.objects.filter(pk=intent.pk).update(status=Intent.Status.PARKED)
        record(Action.INTENT_PARKED, actor, plan.subject(), {"after": UNATTENDED_REPLANS})


def _mode(plan: Plan) -> str:
    """A reviewer's wish is for the agent; only it can ask for something else (R-1)."""
    asks_agent = plan.status == Status.CHANGES_REQUESTED
    return Operation.ReplanMode.AGENT.value if asks_agent else plan.operation.replan


def _is_parked(plan: Plan, intent: Intent) -> bool:
    lapsed = plan.status in (Status.EXPIRED, Status.STALE) and not plan.attended
    return lapsed and intent.unattended_replans >= UNATTENDED_REPLANS


def cancel_waiting(plan: Plan, actor: Actor, *, reason: str) -> None:
    """Re-plans of the plan's intent that are not finished; a late answer finds them gone."""
    for replan in Replan.objects.waiting().filter(intent_id=plan.intent_id):
        Replan.objects.filter(pk=replan.pk).update(status=Replan.Status.CANCELLED, lease=None)
        details = {"cause": replan.cause, "reason": reason}
        record(Action.REPLAN_CANCELLED, actor, plan.subject(), details)

"""Re-plans that an agent makes: claim one under a lease, complete it, or say why not (A-13)."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q

from audit import actors
from audit.actions import Action
from audit.recording import record
from plans.clock import clock
from plans.errors import InvalidField, UnknownReplan
from plans.models import Agent, Operation, Replan

LEASE: Final = timedelta(seconds=60)
AFTER_FAILURE: Final = timedelta(minutes=2)
MAX_REASON: Final = 2_000


def claim(agent: Agent, replan_id: int | None = None) -> Replan | None:
    """Lease one open re-plan of the agent's for 60 s; None when there is none.

    With `replan_id` the same one is claimed again, which renews its lease.
    """
    with transaction.atomic():
        now = clock()
        open_now = Q(status=Replan.Status.QUEUED, next_try_at__lte=now)
        lapsed = Q(status=Replan.Status.LEASED, lease_until__lte=now)
        mine = Replan.objects.filter(intent__agent=agent, mode=Operation.ReplanMode.AGENT)
        if replan_id is not None:
            mine = mine.filter(
                pk=replan_id, status__in=[Replan.Status.QUEUED, Replan.Status.LEASED]
            )
        else:
            mine = mine.filter(open_now | lapsed)
        found = (
            mine.select_for_update(skip_locked=True, of=("self",))
            .select_related("intent__target", "intent__operation", "plan")
            .order_by("next_try_at")
            .first()
        )
        if found is None:
            return None
        found.status, found.lease = Replan.Status.LEASED, uuid.uuid4()
        found.lease_until, found.tries = now + LEASE, found.tries + 1
        found.save(update_fields=["status", "lease", "lease_until", "tries"])
        return found


def fail(agent: Agent, replan_id: int, reason: str) -> Replan:
    """The agent could not plan it now: queued again, with its reason for people to read.

    Raises UnknownReplan, InvalidField (422).
    """
    reason = reason.strip()
    if not reason or len(reason) > MAX_REASON:
        raise InvalidField(f"A reason has 1 to {MAX_REASON} characters.", pointer="/reason")
    with transaction.atomic():
        found = (
            Replan.objects.waiting()
            .select_for_update(of=("self",))
            .select_related("intent__target", "intent__operation", "intent__agent", "plan")
            .filter(pk=replan_id, intent__agent=agent, mode=Operation.ReplanMode.AGENT)
            .first()
        )
        if found is None:
            raise UnknownReplan(pointer="")
        found.status, found.lease, found.last_error = Replan.Status.QUEUED, None, reason
        found.next_try_at = clock() + AFTER_FAILURE
        found.save(update_fields=["status", "lease", "last_error", "next_try_at"])
        details = {"tries": found.tries, "fault": reason}
        actor = actors.agent(agent.pk, agent.name)
        record(Action.REPLAN_FAILED_TRY, actor, found.intent.subject(), details)
        return found

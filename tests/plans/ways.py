"""The way of a plan to each of its statuses, by the verbs of its lifecycle."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from audit.actors import CLOCK
from plans.lifecycle import Verb, transition
from plans.models import Plan

VERBS: dict[str, tuple[Verb, ...]] = {
    "verifying": (),
    "pending": (Verb.VERIFY,),
    "approved": (Verb.VERIFY, Verb.APPROVE),
    "committing": (Verb.VERIFY, Verb.APPROVE, Verb.START_ATTEMPT),
    "unknown": (Verb.VERIFY, Verb.APPROVE, Verb.START_ATTEMPT, Verb.LOSE_TRACK),
    "unresolved": (Verb.VERIFY, Verb.APPROVE, Verb.START_ATTEMPT, Verb.LOSE_TRACK, Verb.GIVE_UP),
    "committed": (Verb.VERIFY, Verb.APPROVE, Verb.START_ATTEMPT, Verb.COMMIT),
    "conflicted": (Verb.VERIFY, Verb.APPROVE, Verb.START_ATTEMPT, Verb.CONFLICT),
    "failed": (Verb.VERIFY, Verb.APPROVE, Verb.START_ATTEMPT, Verb.FAIL),
    "rejected": (Verb.VERIFY, Verb.REJECT),
    "changes_requested": (Verb.VERIFY, Verb.REQUEST_CHANGES),
    "expired": (Verb.EXPIRE,),
    "stale": (Verb.MARK_STALE,),
    "superseded": (Verb.SUPERSEDE,),
    "abandoned": (Verb.ABANDON,),
    "mismatched": (Verb.MISMATCH,),
}


def follow(plan: Plan, *verbs: Verb, **changes: Any) -> Plan:
    """`changes` are written with each of the steps."""
    with transaction.atomic():
        for verb in verbs:
            plan = transition(Plan.objects.locked(plan.pk), verb, actor=CLOCK, **changes)
    return plan

"""Everything that time makes due, found in PostgreSQL; it needs no Redis (Q-2).

Each finder names rows, each worker claims its row by compare-and-set, so that any number of
sweepers beside any number of Celery workers do no work twice (FM-51).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final

from django.db import transaction

from audit import actors
from plans import committing, intents, replanning, resolving, verification
from plans.clock import clock
from plans.errors import NotReplannable
from plans.lifecycle import Verb, allowed, transition
from plans.models import Intent, Plan, Replan
from plans.status import OPEN, Status

# The doorbell gets this long before the sweep does the work itself.
HEAD_START: Final = timedelta(seconds=0.7)
BATCH: Final = 200

type Work = Callable[[], object]


def due_work() -> list[Work]:
    """One look at the clock: every piece of work that is due, as calls to make in any order."""
    finders: Iterable[tuple[Callable[[int], object], Callable[[], list[int]]]] = (
        (expire, expired),
        (carry_out, partial(committing.due, HEAD_START)),
        (resolving.resolve, resolving.due),
        (verification.verify, partial(verification.due, HEAD_START)),
        (replanning.run, partial(replanning.due, HEAD_START)),
        (make_others_stale, committed_over_others),
    )
    work: list[Work] = [partial(act, pk) for act, find in finders for pk in find()]
    work += [partial(end_lifespan, pk) for pk in outlived()]
    return work


def carry_out(pk: int) -> None:
    """An attempt, and at once the read that an answer without proof calls for."""
    if committing.commit(pk) is not None:
        resolving.resolve(pk)


def expired() -> list[int]:
    """Plans past their `decide_by` that wait for people or for a first send."""
    waiting = (Status.VERIFYING, Status.PENDING, Status.APPROVED)
    rows = Plan.objects.filter(status__in=waiting, decide_by__lte=clock())
    return list(rows.order_by("decide_by").values_list("pk", flat=True)[:BATCH])


def expire(pk: int) -> None:
    """Close one plan whose time is over, by the clock after the lock (B-3)."""
    with transaction.atomic():
        plan = Plan.objects.locked(pk)
        still_waits = plan.status in (Status.VERIFYING, Status.PENDING, Status.APPROVED)
        if still_waits and plan.decide_by <= clock():
            transition(plan, Verb.EXPIRE, actor=actors.CLOCK)


def committed_over_others() -> list[int]:
    """Committed plans whose objects other open plans may touch (B-8)."""
    rows = Plan.objects.filter(stales_others=True)
    return list(rows.order_by("id").values_list("pk", flat=True)[:BATCH])


def make_others_stale(pk: int) -> None:
    """Other open plans on these objects were planned for a world that is gone; one at a time."""
    committed = Plan.objects.with_names().get(pk=pk)
    for other in others_on_the_same_objects(committed):
        with transaction.atomic():
            plan = Plan.objects.locked(other)
            if allowed(plan, Verb.MARK_STALE) and plan.received_at <= committed.status_at:
                reason = "another plan on the same object was committed"
                details = {"reason": reason, "committed": committed.plan_id}
                transition(plan, Verb.MARK_STALE, actor=actors.COMMITTER, details=details)
    Plan.objects.filter(pk=pk).update(stales_others=False)


def others_on_the_same_objects(plan: Plan) -> list[int]:
    """Open plans of the same target that touch one of this plan's objects."""
    touched = set(plan.objects_touched)
    rows = Plan.objects.filter(
        target_id=plan.target_id,
        status__in=[Status.VERIFYING, Status.PENDING, Status.APPROVED, Status.COMMITTING],
    ).exclude(pk=plan.pk)
    return [row.pk for row in rows.only("pk", "actions") if touched & set(row.objects_touched)]


def outlived() -> list[uuid.UUID]:
    """Intents whose lifespan is over while a plan or a re-plan of theirs still waits (R-3)."""
    now = clock()
    plans = Plan.objects.filter(status__in=OPEN, intent__lives_until__lte=now)
    replans = Replan.objects.waiting().filter(intent__lives_until__lte=now)
    found = (rows.values_list("intent_id", flat=True)[:BATCH] for rows in (plans, replans))
    return list({pk for rows in found for pk in rows})


def end_lifespan(pk: uuid.UUID) -> None:
    """Abandon one outlived intent with reason `expiry`, unless its commit has begun."""
    with transaction.atomic():
        intent = Intent.objects.locked(pk)
        if intent.lives_until > clock():
            return
        with suppress(NotReplannable):
            intents.end_intent(intent, actor=actors.CLOCK, reason="expiry")

"""Everything that time makes due, found in PostgreSQL; it needs no Redis (Q-2).

Each finder names rows, each worker claims its row by compare-and-set, so that any number of
sweepers beside any number of Celery workers do no work twice (FM-51).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import QuerySet

from audit import actors, seals
from audit.models import StatementTimestamp
from audit.statements import Keys
from plans import (
    committing,
    contract_runs,
    counting,
    expiry,
    intents,
    receivers,
    replanning,
    resolving,
    telling,
    verification,
    webhooks,
)
from plans.clock import clock
from plans.errors import NotReplannable
from plans.lifecycle import Verb, allowed, transition
from plans.models import Intent, Plan, Replan
from plans.outcomes import Kind
from plans.status import OPEN

log = structlog.get_logger(__name__)

# The doorbell gets this long before the sweep does the work itself.
HEAD_START: Final = timedelta(seconds=0.7)
BATCH: Final = 200
# Nothing is left to find out.
SETTLED: Final = frozenset({Kind.APPLIED, Kind.CONFLICTED, Kind.EXPIRED, Kind.FAILED})


class Lane(StrEnum):
    """Who does it: the rows' own work, commits, all else that calls a target, webhooks, notices."""

    ROWS = "rows"
    COMMITS = "commits"
    READS = "reads"
    HOOKS = "hooks"
    NOTICES = "notices"
    TELLS = "tells"
    SEALS = "seals"
    COUNTS = "counts"
    CHECKS = "checks"


@dataclass(frozen=True, slots=True)
class Work:
    """One row's due work. `lane`: what may wait for a target must not hold up what cannot."""

    act: Callable[[int], object] | Callable[[uuid.UUID], object]
    pk: Any
    lane: Lane

    @property
    def key(self) -> tuple[str, Any]:
        """Equal for the same work found again."""
        return self.act.__name__, self.pk

    def __call__(self) -> None:
        self.act(self.pk)


@dataclass(frozen=True, slots=True)
class Finder:
    """The keys of the rows that are due for `act`."""

    act: Callable[[int], object] | Callable[[uuid.UUID], object]
    find: Callable[[], QuerySet[Any, Any]]
    lane: Lane


_of_other_apps: Final[list[Finder]] = []


def also(finder: Finder) -> None:
    """Work of an app that plans never import; called by its `ready()`."""
    if finder not in _of_other_apps:
        _of_other_apps.append(finder)


def also_every_second(work: Work) -> None:
    """The same, for work that is about no row."""
    if work not in EVERY_SECOND:
        EVERY_SECOND.append(work)


def finders() -> list[Finder]:
    """Everything that makes a row due."""
    return [
        Finder(expiry.expire, partial(expiry.due, BATCH), Lane.ROWS),
        Finder(carry_out, partial(committing.due, HEAD_START), Lane.COMMITS),
        Finder(resolving.resolve, resolving.due, Lane.READS),
        Finder(verification.verify, partial(verification.due, HEAD_START), Lane.READS),
        Finder(replanning.run, partial(replanning.due, HEAD_START), Lane.READS),
        Finder(make_others_stale, committed_over_others, Lane.ROWS),
        Finder(webhooks.deliver, webhooks.due, Lane.HOOKS),
        Finder(contract_runs.conduct, partial(contract_runs.due, HEAD_START), Lane.CHECKS),
        Finder(end_lifespan, outlived_by_plans, Lane.ROWS),
        Finder(end_lifespan, outlived_by_replans, Lane.ROWS),
        *_of_other_apps,
    ]


# Twice a second, with nothing to do most of the time: one statement, not one per finder.
LOOK: Final = Keys(lambda: [finder.find() for finder in finders()])


def due_work() -> list[Work]:
    """One look at the clock: every piece of work that is due, as calls to make in any order."""
    looked = zip(finders(), LOOK.all(), strict=True)
    work = [Work(finder.act, pk, finder.lane) for finder, pks in looked for pk in pks]
    return list(dict.fromkeys(work))


def seal(most: int) -> None:
    """Close what was written to the trail since the last time (L-2)."""
    seals.seal_all(most)


def count(most: int) -> None:
    """Add what is new in the trail to the counters of `/metrics`."""
    counting.count_all(most)


def tell(most: int) -> None:
    """Make what happened into deliveries, and forget what is long over (W-1)."""
    telling.tell_all(most)
    receivers.retire_secrets()
    telling.prune()


# Due every second, whatever else is: they are about no row.
EVERY_SECOND: Final = [
    Work(seal, seals.MOST_ROWS, Lane.SEALS),
    Work(count, counting.BATCH, Lane.COUNTS),
    Work(tell, telling.BATCH, Lane.TELLS),
]


def carry_out(pk: int) -> Kind | None:
    """An attempt, and at once the read that an answer without proof calls for."""
    kind = committing.commit(pk)
    if kind is not None and kind not in SETTLED:
        resolving.resolve(pk)
    return kind


def committed_over_others() -> QuerySet[Plan, int]:
    """Committed plans whose objects other open plans may touch (B-8)."""
    rows = Plan.objects.filter(stales_others=True)
    return rows.order_by("id").values_list("pk", flat=True)[:BATCH]


def make_others_stale(pk: int) -> None:
    """Other open plans on these objects were planned for a world that is gone; one at a time.

    The mark goes when all are done: who is killed half-way, or fails at one, is followed up.
    """
    committed = Plan.objects.named(pk)
    done = [_make_stale(other, committed) for other in others_on_the_same_objects(committed)]
    if all(done):
        Plan.objects.filter(pk=pk).update(stales_others=False)


def _make_stale(other: int, committed: Plan) -> bool:
    """Whether this one is settled; its failure is not the others' (B-8)."""
    try:
        with transaction.atomic():
            plan = Plan.objects.locked_with_intent(other)
            if allowed(plan, Verb.MARK_STALE) and plan.received_at <= committed.status_at:
                reason = "another plan on the same object was committed"
                details = {"reason": reason, "committed": committed.plan_id}
                transition(plan, Verb.MARK_STALE, actor=actors.COMMITTER, details=details)
    except Exception:
        log.exception("sweep.not_made_stale", pk=other, committed=committed.plan_id)
        return False
    return True


def others_on_the_same_objects(plan: Plan) -> list[int]:
    """Open plans of the same target that touch one of this plan's objects."""
    return list(Plan.objects.touching(plan).order_by("pk").values_list("pk", flat=True))


def outlived_by_plans() -> QuerySet[Plan, uuid.UUID]:
    """Intents whose lifespan is over while a plan of theirs still waits (R-3)."""
    rows = Plan.objects.filter(status__in=OPEN, intent__lives_until__lte=StatementTimestamp())
    return rows.values_list("intent_id", flat=True)[:BATCH]


def outlived_by_replans() -> QuerySet[Replan, uuid.UUID]:
    """The same, while a re-plan of theirs does."""
    rows = Replan.objects.waiting().filter(intent__lives_until__lte=StatementTimestamp())
    return rows.values_list("intent_id", flat=True)[:BATCH]


def end_lifespan(pk: uuid.UUID) -> None:
    """Abandon one outlived intent with reason `expiry`, unless its commit has begun."""
    with transaction.atomic():
        intent = Intent.objects.locked(pk)
        if intent.lives_until > clock():
            return
        with suppress(NotReplannable):
            intents.end_intent(intent, actor=actors.CLOCK, reason="expiry")

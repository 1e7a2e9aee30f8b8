"""One commit: claim by lease, send, classify, record. Read it from top to bottom.

PostgreSQL holds every wait and every claim; running `commit()` 0, 1 or 100 times for a plan
comes to the same (Q-1). No transaction spans the HTTP call (T-3).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from audit import actors
from audit.failpoints import failpoint
from audit.models import StatementTimestamp
from audit.writing import insert
from plans import gateway, health
from plans.clock import clock
from plans.exchanges import Call, Endpoint
from plans.lifecycle import Verb, transition
from plans.models import Attempt, Plan
from plans.outcomes import Kind, classify
from plans.oversight import oversight
from plans.reading import endpoint, plan_secrets, read_plan, without_secrets
from plans.recording import close_attempt, lose_lapsed, result_check
from plans.sending import (
    Held,
    Hold,
    commit_call,
    hold_every_send,
    hold_first_send,
    hold_resend,
    lease_until,
    look_again,
)
from plans.status import Status

WAITS = frozenset({Hold.CIRCUIT_OPEN, Hold.ATTEMPT_USED, Hold.EMERGENCY_STOP})
SENDABLE = frozenset({Status.APPROVED, Status.UNKNOWN, Status.COMMITTING})


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to make one attempt, until `monotonic_deadline` on this machine's clock."""

    plan: Plan
    attempt: Attempt
    earlier_unknown: bool
    call: Call = field(repr=False)
    endpoint: Endpoint = field(repr=False)
    monotonic_deadline: float


def commit(pk: int) -> Kind | None:
    """Make the attempt that is due for this plan and write down what came of it; None: none was."""
    claim = claim_attempt(pk)
    if claim is None:
        return None
    plan = claim.plan
    failpoint("claim.after", pk)
    answered = gateway.exchange(claim.endpoint, claim.call, deadline=claim.monotonic_deadline)
    failpoint("answer.read", pk)
    exchange = without_secrets(answered, plan_secrets(plan))
    outcome = classify(
        exchange,
        plan_id=plan.plan_id,
        earlier_unknown=claim.earlier_unknown,
        check_result=result_check(plan.operation),
    )
    confirmed = outcome.read_first and plan.target.reads_back
    # T-7: a first refusal is confirmed by one read; the plan may be applied behind our back.
    confirmation = read_plan(plan) if confirmed else None
    failpoint("result.before", pk)
    kind = close_attempt(claim.attempt, outcome, exchange, confirmation)
    failpoint("result.after", pk)
    health.note(plan.target_id, exchange)
    return kind


def claim_attempt(pk: int) -> Claim | None:
    """T-3 in one transaction: lock, check this moment, attempt row, event. None: nothing due."""
    failpoint("claim.before", pk)
    started = time.monotonic()
    with transaction.atomic():
        plan = Plan.objects.locked(pk)
        now = clock()
        if plan.status not in SENDABLE or not plan.next_attempt_at or plan.next_attempt_at > now:
            return None
        attempts = list(plan.attempts.all()) if plan.attempts_made else []
        if attempts and attempts[-1].outcome == Attempt.Outcome.OPEN:
            if attempts[-1].lease_until <= now:
                # No answer was written: we cannot prove that it was not sent.
                lose_lapsed(plan, attempts, now)
            return None
        earlier_unknown = any(a.outcome == Attempt.Outcome.UNKNOWN for a in attempts)
        held = (hold_resend if earlier_unknown else hold_first_send)(plan, attempts, now)
        held = held or hold_every_send()
        if held is not None:
            _put_off(plan, held, now)
            return None
        return _start(plan, earlier_unknown=earlier_unknown, now=now, started=started)


def _start(plan: Plan, *, earlier_unknown: bool, now: datetime, started: float) -> Claim:
    number, until = plan.attempts_made + 1, lease_until(plan, now)
    attempt = insert(Attempt(plan=plan, number=number, lease_until=until))
    plan = transition(
        plan,
        Verb.START_ATTEMPT,
        actor=actors.COMMITTER,
        details={"number": number, "idempotency_key": plan.idempotency_key},
        attempts_made=number,
        first_sent_at=plan.first_sent_at or now,
        # The sweep finds a lapsed lease by the same mark as a due commit.
        next_attempt_at=until,
        next_read_at=None,
    )
    failpoint("claim.inside", plan.pk)
    return Claim(
        plan=plan,
        attempt=attempt,
        earlier_unknown=earlier_unknown,
        call=commit_call(plan, number),
        endpoint=endpoint(plan.target),
        # Counted from before the claim: a frozen process that wakes later sends nothing (FM-56).
        monotonic_deadline=started + plan.target.total_timeout_seconds,
    )


def _put_off(plan: Plan, held: Held, now: datetime) -> None:
    """What a due commit becomes when this moment forbids it."""
    details = {"reason": held.reason}
    if held.hold is Hold.TOO_LATE:
        transition(plan, Verb.EXPIRE, actor=actors.CLOCK, details=details)
    elif held.hold is Hold.READS_ONLY:
        Plan.objects.filter(pk=plan.pk).update(next_attempt_at=None, next_read_at=now)
    elif held.hold in WAITS or plan.may_have_been_sent():
        # It waits, and expires if nobody mends it; a plan that was sent never goes back (S-4).
        Plan.objects.filter(pk=plan.pk).update(next_attempt_at=look_again(plan, held, now))
    elif held.hold is Hold.CONNECTION_CHANGED:
        transition(plan, Verb.MARK_STALE, actor=actors.COMMITTER, details=details)
    else:
        _reopen(plan, details)


def _reopen(plan: Plan, details: dict[str, str]) -> None:
    """Back to people in a new round, on what they will be shown now (B-11)."""
    transition(
        plan,
        Verb.REOPEN,
        actor=actors.COMMITTER,
        details=details,
        round=plan.round + 1,
        approvals_given=0,
        approved_at=None,
        next_attempt_at=None,
        **oversight().assess(plan).columns(),
    )


def due(head_start: timedelta) -> QuerySet[Plan, int]:
    """Plans whose commit, resend or lapsed lease is due; the sweep asks this (Q-2).

    `head_start` is for the doorbell, which rings for first sends alone.
    """
    now = StatementTimestamp()
    rung = Q(status=Status.APPROVED, next_attempt_at__gt=now - head_start)
    rows = Plan.objects.filter(next_attempt_at__lte=now).exclude(rung)
    return rows.order_by("next_attempt_at").values_list("pk", flat=True)[:200]

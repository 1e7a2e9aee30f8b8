"""One commit: claim by lease, send, classify, record. Read it from top to bottom.

PostgreSQL holds every wait and every claim; running `commit()` 0, 1 or 100 times for a plan
comes to the same (Q-1). No transaction spans the HTTP call (T-3).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog
from django.db import transaction

from audit import actors
from plans import gateway
from plans.clock import clock
from plans.exchanges import Call, Endpoint
from plans.lifecycle import Verb, transition
from plans.models import Attempt, Plan
from plans.outcomes import Kind, Outcome, classify, read_state, settle_after_read
from plans.reading import endpoint, read_plan
from plans.recording import close_attempt, lose_lapsed, result_check
from plans.sending import (
    CIRCUIT_WAIT,
    Held,
    Hold,
    commit_call,
    hold_first_send,
    hold_resend,
    lease_until,
)
from plans.status import Status

log = structlog.get_logger(__name__)

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
    outcome, exchange = _send(claim)
    close_attempt(claim.attempt, outcome, exchange)
    return outcome.kind


def claim_attempt(pk: int) -> Claim | None:
    """T-3 in one transaction: lock, check this moment, attempt row, event. None: nothing due."""
    started = time.monotonic()
    with transaction.atomic():
        plan = Plan.objects.locked(pk)
        now = clock()
        if plan.status not in SENDABLE or not plan.next_attempt_at or plan.next_attempt_at > now:
            return None
        attempts = list(plan.attempts.all())
        if attempts and attempts[-1].outcome == Attempt.Outcome.OPEN:
            # The lease has lapsed with no answer written: we cannot prove that it was not sent.
            lose_lapsed(plan, attempts, now)
            return None
        earlier_unknown = any(a.outcome == Attempt.Outcome.UNKNOWN for a in attempts)
        held = hold_resend(plan, attempts, now) if earlier_unknown else hold_first_send(plan, now)
        if held is not None:
            _put_off(plan, held, now)
            return None
        return _start(plan, earlier_unknown=earlier_unknown, now=now, started=started)


def _start(plan: Plan, *, earlier_unknown: bool, now: datetime, started: float) -> Claim:
    number, until = plan.attempts_made + 1, lease_until(plan, now)
    attempt = Attempt.objects.create(plan=plan, number=number, lease_until=until)
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
    elif held.hold is Hold.CIRCUIT_OPEN or plan.may_have_been_sent():
        # It waits, and expires if nobody mends it; a plan that was sent never goes back (S-4).
        Plan.objects.filter(pk=plan.pk).update(next_attempt_at=now + CIRCUIT_WAIT)
    elif held.hold is Hold.CONNECTION_CHANGED:
        transition(plan, Verb.MARK_STALE, actor=actors.COMMITTER, details=details)
    else:
        transition(
            plan,
            Verb.REOPEN,
            actor=actors.COMMITTER,
            details=details,
            round=plan.round + 1,
            approvals_given=0,
            approved_at=None,
            next_attempt_at=None,
        )


def _send(claim: Claim) -> tuple[Outcome, gateway.Exchange]:
    """The one HTTP call of this attempt, and the read that confirms a first refusal (T-7)."""
    plan = claim.plan
    exchange = gateway.exchange(claim.endpoint, claim.call, deadline=claim.monotonic_deadline)
    outcome = classify(
        exchange,
        plan_id=plan.plan_id,
        earlier_unknown=claim.earlier_unknown,
        check_result=result_check(plan.operation),
    )
    if outcome.read_first and plan.target.reads_back:
        reading = read_state(
            read_plan(plan.target, plan.plan_id),
            plan_id=plan.plan_id,
            consumed_plans_readable=plan.target.consumed_plans_readable,
            past_expiry=clock() >= plan.expires_at,
        )
        outcome = settle_after_read(reading, outcome)
    log.info(
        "attempt.answered",
        plan_id=plan.plan_id,
        number=claim.attempt.number,
        outcome=outcome.kind.value,
        reason=outcome.reason,
    )
    return outcome, exchange


def due(head_start: timedelta) -> list[int]:
    """Plans whose commit, resend or lapsed lease is due; the sweep asks this (Q-2)."""
    rows = Plan.objects.filter(next_attempt_at__lte=clock() - head_start)
    return list(rows.order_by("next_attempt_at").values_list("pk", flat=True)[:200])

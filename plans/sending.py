"""May this plan be sent, and how: T-1, T-3, T-9, T-11 and T-13, decided under the plan's lock."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from plans import custody, emergency
from plans.exchanges import Call
from plans.models import Attempt, Plan, Target
from plans.outcomes import not_sent_delay, retry_delay
from plans.oversight import oversight
from plans.status import Status
from plans.timestamps import send_margin

# The window of the lease beyond the total deadline: time to write the answer down (T-3).
LEASE_SLACK: Final = timedelta(seconds=15)
UNDECLARED_RETENTION: Final = 300.0
# How long an approved plan waits before it looks again at what holds it.
CIRCUIT_WAIT: Final = timedelta(seconds=20)
STOP_WAIT: Final = timedelta(seconds=5)
CANNOT_RETRY: Final = "the target cannot retry safely"
CONNECTION_CHANGED: Final = "the target's address or credential was changed"
NEVER_COUNTED: Final = (Attempt.Outcome.NOT_SENT, Attempt.Outcome.RETRY_LATER)


class Hold(StrEnum):
    """Why a due commit is not sent now."""

    TOO_LATE = "too_late"
    CONNECTION_CHANGED = "connection_changed"
    NO_LONGER_APPROVED = "no_longer_approved"
    CIRCUIT_OPEN = "circuit_open"
    ATTEMPT_USED = "attempt_used"
    READS_ONLY = "reads_only"
    EMERGENCY_STOP = "emergency_stop"


@dataclass(frozen=True, slots=True)
class Held:
    hold: Hold
    reason: str


def hold_first_send(plan: Plan, attempts: Sequence[Attempt], now: datetime) -> Held | None:
    """T-3, while no attempt is unknown: every condition of this moment; None: send."""
    margin = send_margin(
        (plan.expires_at - plan.received_at).total_seconds(), plan.target.total_timeout_seconds
    )
    if now >= plan.decide_by or now + timedelta(seconds=margin) >= plan.expires_at:
        return Held(Hold.TOO_LATE, "the time left is shorter than a send may take")
    if plan.connection_version != plan.target.connection_version:
        return Held(Hold.CONNECTION_CHANGED, CONNECTION_CHANGED)
    if objection := oversight().objection_to_sending(plan):
        return Held(Hold.NO_LONGER_APPROVED, objection)
    if plan.target.circuit_opened_at is not None:
        return Held(Hold.CIRCUIT_OPEN, plan.target.circuit_reason)
    if not plan.target.idempotency and first_contact(attempts):
        return Held(Hold.ATTEMPT_USED, CANNOT_RETRY)
    return None


def hold_resend(plan: Plan, attempts: Sequence[Attempt], now: datetime) -> Held | None:
    """T-9, once an attempt is unknown: the same key again, within every bound; None: send."""
    reason = _clock_against_resend(plan, attempts, now) or _change_against_resend(plan, attempts)
    return Held(Hold.READS_ONLY, reason) if reason else None


def hold_every_send() -> Held | None:
    """The emergency stop, asked last: what would be sent otherwise waits (SEC-30, T-13)."""
    reason = emergency.reason_to_hold()
    return None if reason is None else Held(Hold.EMERGENCY_STOP, reason)


def _clock_against_resend(plan: Plan, attempts: Sequence[Attempt], now: datetime) -> str | None:
    target = plan.target
    if now >= (first_contact(attempts) or now) + timedelta(seconds=_half_retention(target)):
        return "the target may have forgotten the key"
    if now >= plan.expires_at and not target.enforces_expiry:
        return "the plan has expired"
    if now >= unknown_deadline(plan, now):
        return "the time to find out is over"
    return None


def _half_retention(target: Target) -> float:
    """A key is trusted for half the time that the target says to keep it (T-9)."""
    retention = target.key_retention_seconds
    return (UNDECLARED_RETENTION if retention is None else retention) / 2


def resend_seconds(target: Target) -> float:
    """The ceiling of T-9: so long after the first send the same key may be sent again."""
    return min(_half_retention(target), float(target.unknown_deadline_seconds))


def _change_against_resend(plan: Plan, attempts: Sequence[Attempt]) -> str | None:
    target = plan.target
    if not target.idempotency:
        return CANNOT_RETRY
    if len(_counted(attempts)) > len(target.retry_delays_seconds):
        return "all retries are used"
    if plan.connection_version != target.connection_version:
        return CONNECTION_CHANGED
    # The first attempt may have come to nothing: then a resend is what applies the plan (T-3).
    return oversight().objection_to_sending(plan)


def _counted(attempts: Sequence[Attempt]) -> list[Attempt]:
    return [a for a in attempts if a.outcome not in NEVER_COUNTED]


def first_contact(attempts: Sequence[Attempt]) -> datetime | None:
    """When the target may have seen the key first; an attempt that never left showed it nothing."""
    sent = (a.started_at for a in attempts if a.outcome != Attempt.Outcome.NOT_SENT)
    return min(sent, default=None)


def unknown_deadline(plan: Plan, now: datetime) -> datetime:
    """When automatic resolution ends and a person must look (T-10)."""
    seconds = plan.target.unknown_deadline_seconds
    return (plan.unknown_since or now) + timedelta(seconds=seconds)


def lease_until(plan: Plan, now: datetime) -> datetime:
    return now + timedelta(seconds=plan.target.total_timeout_seconds) + LEASE_SLACK


def commit_call(plan: Plan, number: int) -> Call:
    """The commit, byte-identical in every attempt but for the `Attempt` header (T-1)."""
    assert plan.commit_body is not None
    key = plan.idempotency_key
    if plan.target.key_style == plan.target.KeyStyle.SF_STRING:
        key = f'"{key}"'
    return Call(
        "POST",
        plan.operation.commit_path,
        body=custody.decrypt(plan.commit_body),
        headers={
            "Content-Type": "application/json",
            "Idempotency-Key": key,
            "Plan-Id": plan.plan_id,
            "Attempt": str(number),
        },
    )


def next_resend(
    plan: Plan, attempts: Sequence[Attempt], now: datetime, retry_after: float | None
) -> datetime | None:
    """When an unknown is retried; None: reads only from here (T-9). `Retry-After` bounds below."""
    jitter = random.uniform(-0.2, 0.2)
    delay = retry_delay(max(1, len(_counted(attempts))), plan.target.retry_delays_seconds, jitter)
    if delay is None:
        return None
    due = now + timedelta(seconds=max(delay, retry_after or 0.0))
    return due if hold_resend(plan, attempts, due) is None else None


def look_again(plan: Plan, held: Held, now: datetime) -> datetime:
    """When a held commit is looked at next. What may have been sent has no window left to miss."""
    due = now + (STOP_WAIT if held.hold is Hold.EMERGENCY_STOP else CIRCUIT_WAIT)
    return due if plan.status == Status.UNKNOWN else while_it_may_be_sent(plan, due)


def while_it_may_be_sent(plan: Plan, due: datetime) -> datetime:
    """No wait outlasts the window: at its end the plan expires (FM-12). decide_by is cut to ms."""
    return min(due, plan.decide_by + timedelta(milliseconds=1))


def next_unsent(attempts: Sequence[Attempt], now: datetime, retry_after: float | None) -> datetime:
    """T-13: `not_sent` and 429 come back after 1, 3, 9, then every 20 s, outside T-9's count."""
    streak = 0
    for attempt in reversed(attempts):
        if attempt.outcome not in NEVER_COUNTED:
            break
        streak += 1
    return now + timedelta(seconds=max(not_sent_delay(max(1, streak)), retry_after or 0.0))

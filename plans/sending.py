"""May this plan be sent, and how: T-1, T-3, T-9, T-11 and T-13, decided under the plan's lock."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from plans import custody
from plans.exchanges import Call
from plans.models import Attempt, Plan
from plans.outcomes import not_sent_delay, retry_delay
from plans.oversight import oversight
from plans.timestamps import send_margin

# The window of the lease beyond the total deadline: time to write the answer down (T-3).
LEASE_SLACK: Final = timedelta(seconds=15)
UNDECLARED_RETENTION: Final = 300.0
# How long an approved plan waits before it looks again at an open circuit.
CIRCUIT_WAIT: Final = timedelta(seconds=20)
NEVER_COUNTED: Final = (Attempt.Outcome.NOT_SENT, Attempt.Outcome.RETRY_LATER)


class Hold(StrEnum):
    """Why a due commit is not sent now."""

    TOO_LATE = "too_late"
    CONNECTION_CHANGED = "connection_changed"
    NO_LONGER_APPROVED = "no_longer_approved"
    CIRCUIT_OPEN = "circuit_open"
    READS_ONLY = "reads_only"


@dataclass(frozen=True, slots=True)
class Held:
    hold: Hold
    reason: str


def hold_first_send(plan: Plan, now: datetime) -> Held | None:
    """T-3, while no attempt is unknown: every condition of this moment; None: send."""
    margin = send_margin(
        (plan.expires_at - plan.received_at).total_seconds(), plan.target.total_timeout_seconds
    )
    if now + timedelta(seconds=margin) >= plan.expires_at:
        return Held(Hold.TOO_LATE, "the time left is shorter than a send may take")
    if plan.connection_version != plan.target.connection_version:
        return Held(Hold.CONNECTION_CHANGED, "the target's address or credential was changed")
    if objection := oversight().objection_to_sending(plan):
        return Held(Hold.NO_LONGER_APPROVED, objection)
    if plan.target.circuit_opened_at is not None:
        return Held(Hold.CIRCUIT_OPEN, plan.target.circuit_reason)
    return None


def hold_resend(plan: Plan, attempts: Sequence[Attempt], now: datetime) -> Held | None:
    """T-9, once an attempt is unknown: the same key again, within every bound; None: send."""
    target = plan.target
    counted = [a for a in attempts if a.outcome not in NEVER_COUNTED]
    if not target.idempotency:
        return Held(Hold.READS_ONLY, "the target cannot retry safely")
    if len(counted) > len(target.retry_delays_seconds):
        return Held(Hold.READS_ONLY, "all retries are used")
    retention = target.key_retention_seconds or UNDECLARED_RETENTION
    first = plan.first_sent_at or attempts[0].started_at
    if now >= first + timedelta(seconds=retention / 2):
        return Held(Hold.READS_ONLY, "the target may have forgotten the key")
    if now >= plan.expires_at and not target.enforces_expiry:
        return Held(Hold.READS_ONLY, "the plan has expired")
    if plan.connection_version != target.connection_version:
        return Held(Hold.READS_ONLY, "the target's address or credential was changed")
    return None


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
    counted = [a for a in attempts if a.outcome not in NEVER_COUNTED]
    jitter = random.uniform(-0.2, 0.2)
    delay = retry_delay(max(1, len(counted)), plan.target.retry_delays_seconds, jitter)
    if delay is None:
        return None
    due = now + timedelta(seconds=max(delay, retry_after or 0.0))
    return due if hold_resend(plan, attempts, due) is None else None


def next_unsent(attempts: Sequence[Attempt], now: datetime, retry_after: float | None) -> datetime:
    """T-13: `not_sent` and 429 come back after 1, 3, 9, then every 20 s, outside T-9's count."""
    streak = 0
    for attempt in reversed(attempts):
        if attempt.outcome not in NEVER_COUNTED:
            break
        streak += 1
    return now + timedelta(seconds=max(not_sent_delay(max(1, streak)), retry_after or 0.0))

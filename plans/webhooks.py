"""Sending what webhooks are told: at least once, one delivery at a time each (W-1, FM-54).

Rows are the queue and the sweeper is the clock. A claim is committed before a socket opens, and
the outcome is written afterwards: who dies in between is followed up when the lease ends, with
the same `webhook-id`. The gateway's rules are these calls' rules: every address checked and the
checked one connected to, no redirect followed, a deadline that a dripping receiver cannot outlive.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from audit import actors
from audit.failpoints import failpoint
from audit.models import ClockTimestamp
from plans import custody, webhook_messages
from plans.clock import clock
from plans.exchanges import Answer, Call, Endpoint, Exchange, NotSent
from plans.gateway import exchange
from plans.models import Delivery, DeliveryAttempt, Webhook
from plans.pacing import parse_retry_after
from plans.receivers import switch_off_locked
from plans.webhook_addresses import Address

log = structlog.get_logger(__name__)

# Seconds before each try, counted from the failure of the one before (W-1).
SCHEDULE: Final = (0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 10.0
TOTAL_SECONDS: Final = 15.0
ANSWER_CAP: Final = 64 * 1024
# The lease beyond the deadline: time to write the outcome down.
LEASE_SLACK: Final = timedelta(seconds=15)
# So long one call sends on and on; then the others have their turn.
BURST_SECONDS: Final = 5.0
BATCH: Final = 200

Outcome = DeliveryAttempt.Outcome
Status = Delivery.Status


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt, committed and not yet sent."""

    webhook: Webhook
    delivery: Delivery
    attempt: DeliveryAttempt
    lease: uuid.UUID
    at: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an attempt. Of an answer only its status is kept (SEC-15)."""

    outcome: DeliveryAttempt.Outcome
    http_status: int | None = None
    fault: str = ""
    elapsed_ms: float | None = None
    retry_after: float = 0.0


def due() -> list[int]:
    """Webhooks that have something to send now, those that are well first; the sweep asks this."""
    now = ClockTimestamp()
    waiting = Delivery.objects.filter(
        webhook=OuterRef("pk"), status=Status.WAITING, next_attempt_at__lte=now
    )
    free = Q(not_before=None) | Q(not_before__lte=now)
    rows = Webhook.objects.on().filter(free, Exists(waiting))
    order = (F("failing_since").asc(nulls_first=True), "pk")
    return list(rows.order_by(*order).values_list("pk", flat=True)[:BATCH])


def deliver(pk: int) -> int:
    """Send what is due to one webhook, one after the other; how many were delivered.

    Ends with the first that is not: the others wait for the next look, so that a receiver that
    hangs holds its thread for one deadline at a time.
    """
    ends, delivered = time.monotonic() + BURST_SECONDS, 0
    while (claim := _claim(pk)) is not None:
        failpoint("hook.claimed", claim.delivery.pk)
        answer = _send(claim)
        failpoint("hook.answered", claim.delivery.pk)
        if not _write_down(claim, _judge(answer, claim.at)):
            break
        delivered += 1
        if time.monotonic() > ends:
            break
    return delivered


def _claim(pk: int) -> Claim | None:
    """Take the webhook and what has waited longest; None: off, busy, or nothing is due."""
    with transaction.atomic():
        webhook = Webhook.objects.on().select_for_update(skip_locked=True).filter(pk=pk).first()
        if webhook is None:
            return None
        now = clock()
        if webhook.not_before is not None and webhook.not_before > now:
            return None
        delivery = _longest_due(webhook, now)
        if delivery is None:
            return None
        delivery.attempts.filter(outcome=Outcome.OPEN).update(outcome=Outcome.LOST)
        if delivery.tries >= len(SCHEDULE):
            _give_up(webhook, delivery, now, Webhook.Off.EXHAUSTED)
            return None
        return _begin(webhook, delivery, now)


def _longest_due(webhook: Webhook, now: datetime) -> Delivery | None:
    rows = Delivery.objects.select_for_update(of=("self",)).select_related("event")
    waiting = rows.filter(webhook=webhook, status=Status.WAITING, next_attempt_at__lte=now)
    return waiting.order_by("next_attempt_at", "pk").first()


def _begin(webhook: Webhook, delivery: Delivery, now: datetime) -> Claim:
    """If its worker is lost the try is used up, and the next one is due as after a failure."""
    lease, ends = uuid.uuid4(), now + timedelta(seconds=TOTAL_SECONDS) + LEASE_SLACK
    delivery.tries, delivery.attempts_made = delivery.tries + 1, delivery.attempts_made + 1
    delivery.next_attempt_at = max(ends, now + _pause(delivery.tries))
    delivery.save(update_fields=["tries", "attempts_made", "next_attempt_at"])
    attempt = delivery.attempts.create(number=delivery.attempts_made)
    Webhook.objects.filter(pk=webhook.pk).update(lease=lease, not_before=ends)
    return Claim(webhook, delivery, attempt, lease, now)


def _pause(tries: int) -> timedelta:
    """How long after the failure of so many tries the next one is due; after the last at once."""
    return timedelta(seconds=SCHEDULE[tries] if tries < len(SCHEDULE) else 0)


def _send(claim: Claim) -> Exchange:
    """The address is parsed and checked again, and resolved for this one connection (SEC-15)."""
    webhook, event = claim.webhook, claim.delivery.event
    try:
        address = Address.parse(webhook.url, internal=webhook.internal)
    except ValueError as refused:
        return NotSent("address-blocked", str(refused))
    endpoint = Endpoint(
        str(address.origin),
        webhook.internal,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        total_timeout=TOTAL_SECONDS,
        answer_cap=ANSWER_CAP,
    )
    body, keys = webhook_messages.body(event), _keys(webhook, claim.at)
    headers = webhook_messages.headers(claim.delivery.message_id, claim.at, body, keys)
    return exchange(endpoint, Call("POST", address.path, body=body, headers=headers))


def _keys(webhook: Webhook, now: datetime) -> Iterator[custody.Secret]:
    """The secret, and for a day after a rotation the one before it."""
    assert webhook.secret is not None
    yield custody.Secret(custody.decrypt(webhook.secret).decode())
    until = webhook.old_secret_until
    if webhook.old_secret is not None and until is not None and until > now:
        yield custody.Secret(custody.decrypt(webhook.old_secret).decode())


def _judge(answer: Exchange, now: datetime) -> Verdict:
    """Only a complete 2xx is delivered; 3xx is not followed and is no success (W-1, FM-21)."""
    if isinstance(answer, Answer):
        delivered = 200 <= answer.status < 300
        asked = None if delivered else parse_retry_after(answer.headers.get("retry-after"), now)
        outcome = Outcome.DELIVERED if delivered else Outcome.REFUSED
        return Verdict(
            outcome,
            http_status=answer.status,
            elapsed_ms=answer.elapsed_ms,
            retry_after=asked or 0.0,
        )
    fault = f"{answer.reason}: {answer.detail}"[:200]
    if isinstance(answer, NotSent):
        return Verdict(Outcome.NOT_SENT, fault=fault)
    return Verdict(Outcome.NO_ANSWER, fault=fault, elapsed_ms=answer.elapsed_ms)


def _write_down(claim: Claim, verdict: Verdict) -> bool:
    """The outcome, under the webhook's lock; whether it is delivered.

    A lease that lapsed meanwhile belongs to another: a late success still counts, a late failure
    is only logged. What a person switched off or sent again meanwhile stays as they left it.
    """
    delivered = verdict.outcome is Outcome.DELIVERED
    with transaction.atomic():
        webhook = Webhook.objects.select_for_update().get(pk=claim.webhook.pk)
        delivery = Delivery.objects.select_for_update().filter(pk=claim.delivery.pk).first()
        if delivery is None:
            return delivered
        _log_attempt(claim, verdict)
        now, mine = clock(), webhook.lease == claim.lease
        if delivered:
            _finish(delivery, Status.DELIVERED, now)
            if mine:
                _free(webhook, failing_since=None, not_before=None)
        elif mine:
            _go_on(webhook, delivery, verdict, now)
        failpoint("hook.inside", delivery.pk)
    return delivered


def _log_attempt(claim: Claim, verdict: Verdict) -> None:
    DeliveryAttempt.objects.filter(pk=claim.attempt.pk).update(
        outcome=verdict.outcome,
        http_status=verdict.http_status,
        fault=verdict.fault,
        elapsed_ms=verdict.elapsed_ms,
    )
    log.info(
        "webhook.attempt",
        webhook=claim.webhook.pk,
        message=claim.delivery.message_id,
        number=claim.attempt.number,
        outcome=verdict.outcome.value,
        http_status=verdict.http_status,
    )


def _go_on(webhook: Webhook, delivery: Delivery, verdict: Verdict, now: datetime) -> None:
    """Not delivered: wait, or stop for good. `Retry-After` bounds below, five minutes at most."""
    if verdict.http_status == 410:
        _give_up(webhook, delivery, now, Webhook.Off.GONE)
    elif delivery.tries >= len(SCHEDULE):
        _give_up(webhook, delivery, now, Webhook.Off.EXHAUSTED)
    else:
        asked = timedelta(seconds=verdict.retry_after)
        due_at = now + max(_pause(delivery.tries), asked)
        waiting = Delivery.objects.filter(pk=delivery.pk, status=Status.WAITING)
        waiting.update(next_attempt_at=due_at)
        pause = now + asked if asked else None
        _free(webhook, failing_since=webhook.failing_since or now, not_before=pause)


def _give_up(webhook: Webhook, delivery: Delivery, now: datetime, why: Webhook.Off) -> None:
    """The receiver is told nothing more, and people see why: on the pages and in the trail."""
    _finish(delivery, Status.GIVEN_UP, now)
    log.error("webhook.switched_off", webhook=webhook.pk, reason=why.value)
    details = {"message": delivery.message_id}
    switch_off_locked(webhook, why, now, actor=actors.DELIVERER, details=details)


def _finish(delivery: Delivery, status: Delivery.Status, now: datetime) -> None:
    """A late success counts for what was cancelled or given up; a failure ends only what waits."""
    ended = Q(status=Status.DELIVERED) if status == Status.DELIVERED else ~Q(status=Status.WAITING)
    Delivery.objects.filter(~ended, pk=delivery.pk).update(
        status=status, next_attempt_at=None, closed_at=now
    )


def _free(webhook: Webhook, **changes: Any) -> None:
    Webhook.objects.filter(pk=webhook.pk).update(lease=None, **changes)

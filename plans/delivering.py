"""Telling receivers: at least once, one message at a time each (W-1, FM-54).

Rows are the queue and the sweeper is the clock. A claim is committed before a socket opens, and
the outcome is written afterwards: who dies in between is followed up when the lease ends, with
the same message ID. Webhooks and notices are lines of this kind; each says how it sends.
"""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import models, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from audit.failpoints import failpoint
from audit.models import StatementTimestamp
from plans.clock import clock
from plans.exchanges import Answer, Exchange, NotSent
from plans.models.messages import Message, MessageAttempt, Receiver
from plans.pacing import parse_retry_after

log = structlog.get_logger(__name__)

# Seconds before each try, counted from the failure of the one before (W-1).
SCHEDULE: Final = (0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
# The lease beyond the deadline: time to write the outcome down.
LEASE_SLACK: Final = timedelta(seconds=15)
# So long one call sends on and on; then the others have their turn.
BURST_SECONDS: Final = 5.0
BATCH: Final = 200

Outcome = MessageAttempt.Outcome
Status = Message.Status


@dataclass(frozen=True, slots=True)
class Claim[R: Receiver, M: Message]:
    """One attempt, committed and not yet sent."""

    receiver: R
    message: M
    attempt: Any
    lease: uuid.UUID
    at: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an attempt. Of an answer only its status is kept (SEC-15).

    `gone`: the receiver wants nothing any more. `hopeless`: this message will never arrive, which
    says nothing about the others.
    """

    outcome: MessageAttempt.Outcome
    http_status: int | None = None
    fault: str = ""
    elapsed_ms: float | None = None
    retry_after: float = 0.0
    gone: bool = False
    hopeless: bool = False


class Line[R: Receiver, M: Message](ABC):
    """One kind of receivers and what they are told; `key` is the message's way to its receiver."""

    receivers: type[R]
    messages: type[M]
    key: str
    # What the sending of a message reads.
    related: tuple[str, ...] = ()

    @property
    @abstractmethod
    def seconds(self) -> float:
        """The longest that one attempt may take."""

    @abstractmethod
    def send(self, claim: Claim[R, M]) -> Verdict:
        """One attempt, outside every transaction; faults of the network are verdicts."""

    @abstractmethod
    def give_up(self, receiver: R, message: M, why: Receiver.Off, now: datetime) -> None:
        """The receiver is told nothing more, and people see why. Called under its lock."""

    def unneeded(self, message: M) -> bool:
        """Whether this need not be told any more; looked at before every attempt."""
        return False

    def due(self) -> QuerySet[R, int]:
        """Receivers to whom something goes now, those that are well first; the sweep asks this."""
        now = StatementTimestamp()
        waiting = self._messages().filter(
            **{self.key: OuterRef("pk")}, status=Status.WAITING, next_attempt_at__lte=now
        )
        free = Q(not_before=None) | Q(not_before__lte=now)
        rows = self._on().filter(free, Exists(waiting))
        order = (F("failing_since").asc(nulls_first=True), "pk")
        return rows.order_by(*order).values_list("pk", flat=True)[:BATCH]

    def deliver(self, pk: int) -> int:
        """Send what is due to one receiver, one after the other; how many were delivered.

        Ends with the first that is not: the others wait for the next look, so that a receiver
        that hangs holds its thread for one deadline at a time.
        """
        ends, delivered = time.monotonic() + BURST_SECONDS, 0
        while (claim := self.claim(pk)) is not None:
            failpoint("hook.claimed", claim.message.pk)
            verdict = self.send(claim)
            failpoint("hook.answered", claim.message.pk)
            if not self.write_down(claim, verdict):
                break
            delivered += 1
            if time.monotonic() > ends:
                break
        return delivered

    def claim(self, pk: int) -> Claim[R, M] | None:
        """Take the receiver and what has waited longest; None: off, busy, or nothing is due."""
        with transaction.atomic():
            receiver = self._on().select_for_update(skip_locked=True).filter(pk=pk).first()
            if receiver is None:
                return None
            now = clock()
            if receiver.not_before is not None and receiver.not_before > now:
                return None
            message = self._next(receiver, now)
            if message is None:
                return None
            message.attempts.filter(outcome=Outcome.OPEN).update(outcome=Outcome.LOST)
            if message.tries >= len(SCHEDULE):
                self._exhaust(receiver, message, now)
                return None
            return self._begin(receiver, message, now)

    def _next(self, receiver: R, now: datetime) -> M | None:
        """What has waited longest; what nobody needs to know any more is cancelled on the way."""
        rows = self._messages().select_for_update(of=("self",)).select_related(*self.related)
        waiting = rows.filter(
            **{self.key: receiver}, status=Status.WAITING, next_attempt_at__lte=now
        )
        for message in waiting.order_by("next_attempt_at", "pk")[:BATCH]:
            if not self.unneeded(message):
                return message
            self._finish(message, Status.CANCELLED, now)
        return None

    def _begin(self, receiver: R, message: M, now: datetime) -> Claim[R, M]:
        """If its worker is lost the try is used up, and the next one is due as after a failure."""
        lease, ends = uuid.uuid4(), now + timedelta(seconds=self.seconds) + LEASE_SLACK
        message.tries, message.attempts_made = message.tries + 1, message.attempts_made + 1
        message.next_attempt_at = max(ends, now + _pause(message.tries))
        message.save(update_fields=["tries", "attempts_made", "next_attempt_at"])
        attempt = message.attempts.create(number=message.attempts_made)
        self._free(receiver, lease=lease, not_before=ends)
        return Claim(receiver, message, attempt, lease, now)

    def write_down(self, claim: Claim[R, M], verdict: Verdict) -> bool:
        """The outcome, under the receiver's lock; whether it is delivered.

        A lease that lapsed meanwhile belongs to another: a late success still counts, a late
        failure is only logged. What a person switched off or sent again meanwhile stays.
        """
        delivered = verdict.outcome is Outcome.DELIVERED
        with transaction.atomic():
            held = self.receivers._default_manager.select_for_update()
            receiver = held.get(pk=claim.receiver.pk)
            rows = self._messages().select_for_update()
            message = rows.filter(pk=claim.message.pk).first()
            if message is None:
                return delivered
            self._log_attempt(claim, verdict)
            now, mine = clock(), receiver.lease == claim.lease
            if delivered:
                self._finish(message, Status.DELIVERED, now)
                if mine:
                    self._free(receiver, failing_since=None, not_before=None)
            elif mine:
                self._go_on(receiver, message, verdict, now)
            failpoint("hook.inside", message.pk)
        return delivered

    def _log_attempt(self, claim: Claim[R, M], verdict: Verdict) -> None:
        type(claim.attempt)._default_manager.filter(pk=claim.attempt.pk).update(
            outcome=verdict.outcome,
            http_status=verdict.http_status,
            fault=verdict.fault,
            elapsed_ms=verdict.elapsed_ms,
        )
        log.info(
            f"{self.key}.attempt",
            **{self.key: claim.receiver.pk},
            message=claim.message.message_id,
            number=claim.attempt.number,
            outcome=verdict.outcome.value,
            http_status=verdict.http_status,
        )

    def _go_on(self, receiver: R, message: M, verdict: Verdict, now: datetime) -> None:
        """Not delivered: wait, or stop for good. `Retry-After` bounds below."""
        if verdict.gone:
            self._give_up(receiver, message, now, Receiver.Off.GONE)
        elif verdict.hopeless:
            self._finish(message, Status.GIVEN_UP, now)
            self._free(receiver, not_before=None)
        elif message.tries >= len(SCHEDULE):
            self._exhaust(receiver, message, now)
        else:
            asked = timedelta(seconds=verdict.retry_after)
            waiting = self._messages().filter(pk=message.pk, status=Status.WAITING)
            waiting.update(next_attempt_at=now + max(_pause(message.tries), asked))
            pause = now + asked if asked else None
            self._free(receiver, failing_since=receiver.failing_since or now, not_before=pause)

    def _exhaust(self, receiver: R, message: M, now: datetime) -> None:
        self._give_up(receiver, message, now, Receiver.Off.EXHAUSTED)

    def _give_up(self, receiver: R, message: M, now: datetime, why: Receiver.Off) -> None:
        self._finish(message, Status.GIVEN_UP, now)
        log.error(f"{self.key}.switched_off", **{self.key: receiver.pk}, reason=why.value)
        self.give_up(receiver, message, why, now)

    def _finish(self, message: M, status: Message.Status, now: datetime) -> None:
        """A late success counts for what was cancelled or given up; else what waits ends."""
        delivered = status == Status.DELIVERED
        ended = Q(status=Status.DELIVERED) if delivered else ~Q(status=Status.WAITING)
        self._messages().filter(~ended, pk=message.pk).update(
            status=status, next_attempt_at=None, closed_at=now
        )

    def _free(self, receiver: R, **changes: Any) -> None:
        changes = {"lease": None, **changes}
        self.receivers._default_manager.filter(pk=receiver.pk).update(**changes)

    def _on(self) -> models.QuerySet[R]:
        return self.receivers._default_manager.filter(on_since__isnull=False)

    def _messages(self) -> models.QuerySet[M]:
        return self.messages._default_manager.all()


def _pause(tries: int) -> timedelta:
    """How long after the failure of so many tries the next one is due; after the last at once."""
    return timedelta(seconds=SCHEDULE[tries] if tries < len(SCHEDULE) else 0)


def judge(answer: Exchange, now: datetime) -> Verdict:
    """Only a complete 2xx is delivered; 3xx is not followed and is no success (W-1, FM-21)."""
    if isinstance(answer, Answer):
        delivered = 200 <= answer.status < 300
        asked = None if delivered else parse_retry_after(answer.headers.get("retry-after"), now)
        return Verdict(
            Outcome.DELIVERED if delivered else Outcome.REFUSED,
            http_status=answer.status,
            elapsed_ms=answer.elapsed_ms,
            retry_after=asked or 0.0,
            gone=answer.status == 410,
        )
    fault = f"{answer.reason}: {answer.detail}"[:200]
    if isinstance(answer, NotSent):
        return Verdict(Outcome.NOT_SENT, fault=fault)
    return Verdict(Outcome.NO_ANSWER, fault=fault, elapsed_ms=answer.elapsed_ms)

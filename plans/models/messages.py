"""What webhooks and notices have in common: a receiver, what it is told, and how each try went."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from audit.models import ClockTimestamp

# What waits has a time to wait for; nothing else is ever sent.
DUE_WHILE_IT_WAITS = models.Q(
    status="waiting", next_attempt_at__isnull=False, closed_at=None
) | ~models.Q(status="waiting") & models.Q(next_attempt_at=None, closed_at__isnull=False)


class Receiver(models.Model):
    """Somebody who is told something over the network. Without `on_since` it is off.

    One message at a time: a receiver that hangs holds one thread, and no other receiver.
    """

    class Off(models.TextChoices):
        PERSON = "person", _("switched off by a person")
        GONE = "gone", _("the receiver answered 410: it is gone")
        EXHAUSTED = "exhausted", _("a delivery failed for three days")

    on_since = models.DateTimeField(null=True)
    off_at = models.DateTimeField(null=True)
    off_reason = models.CharField(max_length=10, choices=Off.choices, blank=True)
    lease = models.UUIDField(null=True, editable=False)
    not_before = models.DateTimeField(null=True, editable=False)
    failing_since = models.DateTimeField(null=True, editable=False)

    class Meta:
        abstract = True


class Message(models.Model):
    """One message for one receiver: the row is the queue, and its attempts are the log."""

    class Status(models.TextChoices):
        WAITING = "waiting", _("waiting")
        DELIVERED = "delivered", _("delivered")
        GIVEN_UP = "given_up", _("given up")
        CANCELLED = "cancelled", _("cancelled")

    attempts: Any  # The rows of the attempts, by each kind's own foreign key.

    # The same in every attempt.
    uid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.WAITING)
    # Of the schedule, begun anew by "Send again"; `attempts_made` counts them all.
    tries = models.PositiveIntegerField(default=0)
    attempts_made = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    @property
    def message_id(self) -> str:
        return f"msg_{self.uid.hex}"


class MessageAttempt(models.Model):
    """One call. Of the answer only its status is kept, or the word for having none."""

    class Outcome(models.TextChoices):
        OPEN = "open", _("on its way")
        DELIVERED = "delivered", _("delivered")
        REFUSED = "refused", _("refused")
        NO_ANSWER = "no_answer", _("no answer")
        NOT_SENT = "not_sent", _("not sent")
        LOST = "lost", _("lost with its worker")

    number = models.PositiveIntegerField()
    outcome = models.CharField(max_length=10, choices=Outcome.choices, default=Outcome.OPEN)
    http_status = models.PositiveSmallIntegerField(null=True)
    fault = models.CharField(max_length=200, blank=True)
    elapsed_ms = models.FloatField(null=True)
    started_at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        abstract = True

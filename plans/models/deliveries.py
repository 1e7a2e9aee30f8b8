"""Webhooks: where an agent's events are told to, and how each telling went (W-1)."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models
from django.db.models import Count, Q

from audit.models import ClockTimestamp, Event
from plans.models.agents import Agent
from plans.models.marks import TrailMark
from plans.models.messages import DUE_WHILE_IT_WAITS, Message, MessageAttempt, Receiver


class WebhookQuerySet(models.QuerySet["Webhook"]):
    def on(self) -> Self:
        """Those that are told anything."""
        return self.filter(on_since__isnull=False)

    def tally(self) -> dict[str, int]:
        """How many are on, how many of these fail now, and how many stopped because they failed."""
        on = Q(on_since__isnull=False)
        counts: dict[str, int] = self.aggregate(
            on=Count("pk", filter=on),
            failing=Count("pk", filter=on & Q(failing_since__isnull=False)),
            stopped=Count("pk", filter=~on & ~Q(off_reason=Webhook.Off.PERSON)),
        )
        return counts


class Webhook(Receiver):
    """A receiver of an agent's events, set by a person. Its address is never edited (SEC-18).

    When it is off, `off_reason` says why.
    """

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="webhooks")
    url = models.CharField(max_length=500)
    internal = models.BooleanField(
        default=False, help_text="Loopback and private addresses allowed"
    )
    # Encrypted by custody. The old one signs beside the new one until it is destroyed.
    secret = models.BinaryField(null=True, editable=False)
    old_secret = models.BinaryField(null=True, editable=False)
    old_secret_until = models.DateTimeField(null=True, editable=False)
    # Raised by every rotation: a form is for the secret that its page was about.
    secret_number = models.PositiveIntegerField(default=1, editable=False)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)

    objects = WebhookQuerySet.as_manager()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            # A form that is sent twice makes one.
            models.UniqueConstraint(fields=["agent", "url"], name="one_webhook_per_address"),
            models.CheckConstraint(
                name="a_webhook_is_on_or_says_why_not",
                condition=Q(on_since__isnull=True, off_at__isnull=False) & ~Q(off_reason="")
                | Q(on_since__isnull=False, off_at=None, off_reason=""),
            ),
        ]

    def __str__(self) -> str:
        return f"webhook {self.pk} of {self.agent_id}"


class Delivery(Message):
    """One event for one webhook. Its `message_id` is the `webhook-id`."""

    webhook = models.ForeignKey(Webhook, on_delete=models.PROTECT, related_name="deliveries")
    # Events are never deleted (L-1); a constraint would answer a TRUNCATE before the trail does.
    event = models.ForeignKey(
        Event, on_delete=models.PROTECT, related_name="+", db_constraint=False
    )

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["webhook", "event"], name="one_delivery_per_event"),
            models.CheckConstraint(
                name="what_waits_is_due_some_time",
                condition=DUE_WHILE_IT_WAITS,
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["webhook", "next_attempt_at"],
                name="delivery_due",
                condition=Q(status="waiting"),
            ),
            models.Index(fields=["webhook", "-id"], name="delivery_log"),
            models.Index(
                fields=["closed_at"],
                name="delivery_closed",
                condition=Q(closed_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"delivery {self.uid} of {self.webhook_id}"


class DeliveryAttempt(MessageAttempt):
    """One HTTP call."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="attempts")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["delivery", "number"], name="one_row_per_telling"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.delivery_id}"


class ToldUpTo(TrailMark):
    """The last event of the trail that was made into deliveries: one row."""

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(name="one_told_up_to", condition=Q(id=1)),
        ]

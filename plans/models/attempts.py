"""Attempts: one HTTP commit call each, with the raw answer."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from audit.models import ClockTimestamp
from plans.models.plans import Plan


class AttemptQuerySet(models.QuerySet["Attempt"]):
    def maybe_sent(self) -> Self:
        """Attempts that may have reached the target; an open one cannot be ruled out (S-4)."""
        return self.exclude(outcome__in=[Attempt.Outcome.NOT_SENT])

    def unknown(self) -> Self:
        """Closed attempts whose effect nobody knows (T-8)."""
        return self.filter(outcome=Attempt.Outcome.UNKNOWN)


class Attempt(models.Model):
    """One commit call under a lease. Closed by compare-and-set on (plan, number, lease) (T-12)."""

    class Outcome(models.TextChoices):
        OPEN = "open", _("no answer yet")
        APPLIED = "applied", _("applied")
        CONFLICTED = "conflicted", _("the world moved")
        EXPIRED = "expired", _("too late")
        FAILED = "failed", _("refused")
        NOT_SENT = "not_sent", _("never left")
        RETRY_LATER = "retry_later", _("asked to come back")
        UNKNOWN = "unknown", _("no trustworthy answer")

    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="attempts")
    number = models.PositiveIntegerField()
    lease = models.UUIDField(default=uuid.uuid4, editable=False)
    lease_until = models.DateTimeField()
    started_at = models.DateTimeField(db_default=ClockTimestamp())
    closed_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=12, choices=Outcome.choices, default=Outcome.OPEN)
    reason = models.TextField(blank=True)
    http_status = models.PositiveSmallIntegerField(null=True)
    # The raw answer, token text masked, at most 8 KiB of it for the page.
    answer = models.TextField(blank=True)
    answer_headers: models.JSONField[Any, Any] = models.JSONField(default=dict)
    elapsed_ms = models.FloatField(null=True)
    replayed = models.BooleanField(default=False)

    objects = AttemptQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["number"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["plan", "number"], name="one_attempt_per_number"),
            # Two workers never hold an attempt of one plan at once.
            models.UniqueConstraint(
                fields=["plan"],
                name="one_open_attempt_per_plan",
                condition=models.Q(outcome="open"),
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["lease_until"], name="attempt_lease", condition=models.Q(outcome="open")
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.plan_id}"

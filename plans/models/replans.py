"""Re-plans: queued pieces of work that get a fresh plan for an intent."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from audit.models import ClockTimestamp
from plans.models.intents import Intent
from plans.models.plans import Plan
from plans.models.targets import Operation


class ReplanQuerySet(models.QuerySet["Replan"]):
    def waiting(self) -> Self:
        """Work not finished: queued, running or parked."""
        return self.filter(status__in=Replan.WAITING)


class Replan(models.Model):
    """One per dead plan (R-1); without a plan it is an intent's first dry run (A-12)."""

    class Status(models.TextChoices):
        QUEUED = "queued", _("queued")
        LEASED = "leased", _("running")
        PARKED = "parked", _("parked until a reviewer opens it")
        DONE = "done", _("done")
        CANCELLED = "cancelled", _("cancelled")

    class Cause(models.TextChoices):
        FIRST = "first", _("first dry run")
        EXPIRED = "expired", _("expired")
        CONFLICTED = "conflicted", _("conflicted")
        STALE = "stale", _("stale")
        CHANGES_REQUESTED = "changes_requested", _("changes requested")
        PERSON = "person", _("a person asked")
        OPENED = "opened", _("opened with little time left")

    WAITING: ClassVar[tuple[str, ...]] = (Status.QUEUED, Status.LEASED, Status.PARKED)

    intent = models.ForeignKey(Intent, on_delete=models.PROTECT, related_name="replans")
    plan = models.OneToOneField(
        Plan, null=True, blank=True, on_delete=models.PROTECT, related_name="replan"
    )
    cause = models.CharField(max_length=20, choices=Cause.choices)
    mode = models.CharField(max_length=8, choices=Operation.ReplanMode.choices)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.QUEUED)
    reason = models.TextField(blank=True, help_text="The reviewer's note, or the target's refusal")
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(db_default=ClockTimestamp())
    lease = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    last_error = models.TextField(blank=True)
    new_plan = models.OneToOneField(
        Plan, null=True, blank=True, on_delete=models.PROTECT, related_name="made_by"
    )
    created_at = models.DateTimeField(db_default=ClockTimestamp())
    finished_at = models.DateTimeField(null=True)

    objects = ReplanQuerySet.as_manager()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            # At most one piece of re-planning work waits for an intent at a time.
            models.UniqueConstraint(
                fields=["intent"],
                name="one_waiting_replan_per_intent",
                condition=models.Q(status__in=["queued", "leased", "parked"]),
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["next_try_at"],
                name="replan_due",
                condition=models.Q(status__in=["queued", "leased"]),
            ),
        ]

    def __str__(self) -> str:
        return f"re-plan {self.pk} of {self.intent_id}"

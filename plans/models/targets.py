"""Targets and their operations: who owns the data, and which writes it offers."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from audit.models import ClockTimestamp


def default_retry_delays() -> list[float]:
    return [1, 3, 9, 20]


class Target(models.Model):
    """A system that owns data and offers a dry run and a commit. Times are in seconds."""

    class KeyStyle(models.TextChoices):
        BARE = "bare", _("bare")
        SF_STRING = "sf-string", _("quoted structured-field string")

    name = models.CharField(max_length=100, unique=True)
    base_url = models.URLField(max_length=500)
    internal = models.BooleanField(
        default=False, help_text="Loopback and private addresses allowed"
    )
    # Encrypted by custody; changing base_url wipes it (SEC-18).
    credential = models.BinaryField(null=True, blank=True, editable=False)
    # Raised whenever origin or credential changes; a plan remembers the one it was verified by.
    connection_version = models.PositiveIntegerField(default=1, editable=False)
    # T-7: opened by a 401/403, stops first sends until a new credential or "Try again".
    circuit_opened_at = models.DateTimeField(null=True, blank=True, editable=False)
    circuit_reason = models.CharField(max_length=200, blank=True, editable=False)

    plan_path = models.CharField(max_length=500, blank=True)
    allow_unverified = models.BooleanField(default=False)
    idempotency = models.BooleanField(default=True)
    key_style = models.CharField(max_length=16, choices=KeyStyle.choices, default=KeyStyle.BARE)
    key_retention_seconds = models.PositiveIntegerField(null=True, blank=True)
    enforces_expiry = models.BooleanField(default=False)
    consumed_plans_readable = models.BooleanField(default=False)
    connect_timeout_seconds = models.FloatField(default=5)
    read_timeout_seconds = models.FloatField(default=30)
    total_timeout_seconds = models.FloatField(default=45)
    retry_delays_seconds: ArrayField[Any, Any] = ArrayField(
        models.FloatField(), default=default_retry_delays
    )
    unknown_deadline_seconds = models.PositiveIntegerField(default=900)
    min_window_seconds = models.PositiveIntegerField(default=60)
    max_window_seconds = models.PositiveIntegerField(default=86400)
    fresh_for_seconds = models.PositiveIntegerField(default=120)
    reviewers = models.ManyToManyField(Group, related_name="reviewed_targets", blank=True)
    created_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)

    def __str__(self) -> str:
        return self.name

    @property
    def reads_back(self) -> bool:
        """Whether a plan can be read by its ID; without it nothing can be verified (T-2)."""
        return bool(self.plan_path)


class Operation(models.Model):
    """One kind of write at a target."""

    class Risk(models.TextChoices):
        LOW = "low", _("low")
        MEDIUM = "medium", _("medium")
        HIGH = "high", _("high")
        CRITICAL = "critical", _("critical")

    class ReplanMode(models.TextChoices):
        SERVER = "server", _("the app repeats the dry run")
        AGENT = "agent", _("the agent makes a new plan")

    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="operations")
    name = models.CharField(max_length=100)
    title = models.CharField(max_length=300, blank=True)
    asked = models.CharField(max_length=300, blank=True)
    reversible = models.BooleanField(default=False)
    formats: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    dry_run_path = models.CharField(max_length=500)
    commit_path = models.CharField(max_length=500)
    replan = models.CharField(max_length=8, choices=ReplanMode.choices, default=ReplanMode.SERVER)
    risk = models.CharField(max_length=8, choices=Risk.choices, default=Risk.HIGH)
    inputs_schema: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)
    result_schema: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)
    ops: ArrayField[Any, Any] = ArrayField(models.CharField(max_length=100), null=True, blank=True)
    fields: ArrayField[Any, Any] = ArrayField(
        models.CharField(max_length=200), null=True, blank=True
    )

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["target", "name"], name="one_operation_per_name"),
        ]

    def __str__(self) -> str:
        return f"{self.target.name}.{self.name}"

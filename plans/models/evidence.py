"""What an agent found, beside its plan."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from audit.models import ClockTimestamp
from plans.models.plans import Plan


class Evidence(models.Model):
    """A read the agent found: shown as its words, never part of the digest (A-9)."""

    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="evidence")
    label = models.CharField(max_length=200)
    text = models.TextField(blank=True)
    url = models.TextField(blank=True)
    added_at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        ordering: ClassVar[list[str]] = ["id"]
        verbose_name_plural = "evidence"

    def __str__(self) -> str:
        return self.label

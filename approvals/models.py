"""Decisions: one person's verdict on one plan."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from audit.models import ClockTimestamp
from plans.models import Plan


class Decision(models.Model):
    """A verdict, with the digest of what the person saw."""

    class Verdict(models.TextChoices):
        APPROVE = "approve", "approved"
        REJECT = "reject", "rejected"
        REQUEST_CHANGES = "request_changes", "requested changes"

    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="decisions")
    round = models.PositiveIntegerField()
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="decisions"
    )
    verdict = models.CharField(max_length=16, choices=Verdict.choices)
    note = models.TextField(blank=True)
    shown_digest = models.CharField(max_length=64)
    decided_at = models.DateTimeField(db_default=ClockTimestamp())
    # B-8: the strip shows it until the person dismisses it (or it committed and was seen).
    dismissed = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            # One verdict per person in a round (B-11): double clicks and two tabs count once.
            models.UniqueConstraint(
                fields=["plan", "round", "person"], name="one_decision_per_person_and_round"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["person", "-id"], name="decision_by_person"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} of {self.plan_id} by {self.person_id}"

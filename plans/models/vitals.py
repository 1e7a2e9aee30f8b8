"""Signs of life: of our own processes, of the targets, and the counters behind `/metrics`."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from audit.models import ClockTimestamp
from plans.models.marks import TrailMark
from plans.models.targets import Target


class Heartbeat(models.Model):
    """One row per process that works in the background; it writes every few seconds."""

    # sweeper, or worker:<queue>
    part = models.CharField(max_length=100)
    process = models.CharField(max_length=200)
    beat_at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["part", "process"], name="one_heart_per_process"),
        ]

    def __str__(self) -> str:
        return f"{self.part} {self.process}"


class TargetHealth(models.Model):
    """How a target has answered lately: weights that halve every five minutes (C-2)."""

    target = models.OneToOneField(
        Target, primary_key=True, on_delete=models.CASCADE, related_name="health"
    )
    calls = models.FloatField(default=0)
    faults = models.FloatField(default=0)
    # Theirs less ours, in seconds; of the last answer that had a date.
    skew_seconds = models.FloatField(null=True)
    last_fault = models.CharField(max_length=100, blank=True)
    last_fault_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(db_default=ClockTimestamp())

    def __str__(self) -> str:
        return f"health of {self.target_id}"


class Counter(models.Model):
    """How often something happened since the installation began; it only grows.

    `word` is the verdict, outcome or cause where the action has one, or a bucket's upper bound.
    """

    action = models.CharField(max_length=64)
    word = models.CharField(max_length=40)
    target = models.CharField(max_length=100)
    # The status that a plan arrived at by it, if it moved.
    status = models.CharField(max_length=32)
    value = models.BigIntegerField()
    seconds = models.FloatField(default=0)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["action", "word", "target", "status"], name="one_counter_per_series"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.word} {self.target} {self.status}".strip()


class CountedUpTo(TrailMark):
    """The last event of the trail that the counters hold: one row."""

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(name="one_counted_up_to", condition=models.Q(id=1)),
        ]

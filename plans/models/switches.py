"""The emergency stop: one row, one switch for every send (SEC-30)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

# Any number will do, as long as nothing else in this database locks it. Migration 0004 has it too.
STOP_LOCK = 0x570BA115


class EmergencyStop(models.Model):
    """The switch. Without its row, or without `stopped_at`, commits are sent."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    # Raised by every stop: a confirmation is for the stop that the person has seen.
    number = models.PositiveIntegerField(default=0)
    stopped_at = models.DateTimeField(null=True)
    stopped_by = models.CharField(max_length=200, blank=True)
    reason = models.TextField(blank=True)
    # The first of the two people that a release needs.
    release_asked_at = models.DateTimeField(null=True)
    release_asked_by_id = models.CharField(max_length=64, blank=True)
    release_asked_by = models.CharField(max_length=200, blank=True)
    release_reason = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(name="one_emergency_stop", condition=Q(id=1)),
            # Nothing can be asked for that is not there, and a stop says why.
            models.CheckConstraint(
                name="only_a_stop_is_released",
                condition=Q(release_asked_at=None) | Q(stopped_at__isnull=False),
            ),
            models.CheckConstraint(
                name="a_stop_has_a_reason", condition=Q(stopped_at=None) | ~Q(reason="")
            ),
        ]

    def __str__(self) -> str:
        return "stopped" if self.stopped_at else "sending"

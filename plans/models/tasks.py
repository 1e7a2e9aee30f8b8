"""Tasks: an agent's units of work, known here once they end or report a write."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from audit.models import ClockTimestamp
from plans.models.agents import Agent


class Task(models.Model):
    """A task that ended (A-11): a submission for it is refused from then on."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="tasks")
    task_id = models.CharField(max_length=128)
    outcome = models.TextField(blank=True)
    ended_at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            # A task ends once; saying it again changes nothing.
            models.UniqueConstraint(fields=["agent", "task_id"], name="one_end_per_task"),
        ]

    def __str__(self) -> str:
        return self.task_id


class Write(models.Model):
    """A write that the agent made itself: the dirty flag (A-10). `*` among objects means any."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="writes")
    task_id = models.CharField(max_length=128)
    objects_written: ArrayField[Any, Any] = ArrayField(models.CharField(max_length=300))
    tool = models.CharField(max_length=200)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            # A plan that arrives later looks for writes of its task after its creation.
            models.Index(fields=["agent", "task_id", "-at"], name="write_by_task"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} wrote {', '.join(self.objects_written)}"

    def hits(self, covers: list[str] | None) -> bool:
        """Whether a plan with these covers was planned on what this wrote; none: on anything."""
        return (
            covers is None
            or "*" in self.objects_written
            or bool({*covers} & {*self.objects_written})
        )

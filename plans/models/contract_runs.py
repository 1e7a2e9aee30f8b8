"""Runs of the contract's checks at a target, asked for by a person."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from audit.models import ClockTimestamp
from plans.models.targets import Operation, Target


class ContractRun(models.Model):
    """One run. The row is the queue: a bell only says "look now", and a sweep finds lost ones."""

    class Status(models.TextChoices):
        QUEUED = "queued", _("about to begin")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        LOST = "lost", _("came to no end")

    WAITING: ClassVar = (Status.QUEUED, Status.RUNNING)

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="contract_runs")
    operation = models.ForeignKey(Operation, on_delete=models.CASCADE, related_name="+")
    requested_by = models.CharField(max_length=200)
    requested_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    status = models.CharField(max_length=8, choices=Status.choices, default=Status.QUEUED)
    # When it may be claimed; a claim moves it to the end of its lease.
    due_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)
    tries = models.PositiveSmallIntegerField(default=0)
    finished_at = models.DateTimeField(null=True, blank=True)
    # As `countersign-check-target --json` writes it. No plan's content is in it.
    report: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            # Two at a time would see each other's plans as a world that moves.
            models.UniqueConstraint(
                fields=["target"],
                condition=Q(status__in=["queued", "running"]),
                name="one_contract_run_at_a_time",
            ),
            models.CheckConstraint(
                name="a_finished_run_has_a_report",
                condition=~Q(status="done") | Q(report__isnull=False),
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["due_at"],
                name="contract_run_due",
                condition=Q(status__in=["queued", "running"]),
            ),
        ]

    def __str__(self) -> str:
        return f"contract of {self.target.name}, {self.status}"

    @property
    def waiting(self) -> bool:
        """Whether its end is still to come."""
        return self.status in self.WAITING

    def number(self, verdict: str) -> int:
        """How many checks came to a verdict: `ok`, `look`, `wrong` or `not_run`."""
        return int(self.report["counts"][verdict]) if self.report else 0

    @property
    def found(self) -> int:
        return self.number("wrong")

    @property
    def made(self) -> int:
        return sum(self.number(verdict) for verdict in ("ok", "look", "wrong"))

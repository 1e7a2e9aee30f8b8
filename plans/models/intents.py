"""Intents: the logical write an agent wants, through any number of plans."""

from __future__ import annotations

import uuid
from typing import ClassVar, Final

from django.db import models
from django.utils.translation import gettext_lazy as _

from audit.models import ClockTimestamp
from audit.recording import Subject
from audit.statements import Slot, Statement
from plans.models.agents import Agent
from plans.models.targets import Operation, Target


class IntentQuerySet(models.QuerySet["Intent"]):
    def locked(self, pk: uuid.UUID) -> Intent:
        """The intent under its lock, taken before any of its plans'; foreign keys stay writable."""
        return _LOCKED.get(pk=pk)


class Intent(models.Model):
    """What was asked for. Its own status only says what its latest plan cannot."""

    class Status(models.TextChoices):
        OPEN = "open", _("open")
        PARKED = "parked", _("parked: planned when a reviewer opens it")
        SETTLED = "settled", _("settled: nothing left to change")
        ABANDONED = "abandoned", _("abandoned")
        FAILED = "failed", _("failed: no plan could be made")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="intents")
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="intents")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="intents")
    task_id = models.CharField(max_length=128)
    # The exact bytes of the latest inputs, repeated by a server re-plan (T-1, R-1).
    inputs = models.BinaryField()
    summary = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.OPEN)
    closed_reason = models.TextField(blank=True)
    latest_revision = models.PositiveIntegerField(default=0)
    # three in a row without a person's look park the intent.
    unattended_replans = models.PositiveIntegerField(default=0)
    lives_until = models.DateTimeField()
    created_at = models.DateTimeField(db_default=ClockTimestamp(), editable=False)

    objects = IntentQuerySet.as_manager()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["agent", "task_id"], name="intent_by_task"),
            models.Index(
                fields=["target"], name="intent_parked", condition=models.Q(status="parked")
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    def subject(self) -> Subject:
        """This intent as an event names it, where no plan is meant."""
        return Subject(
            target=self.target.name,
            operation=self.operation.name,
            agent=self.agent.name,
            intent_id=self.pk,
            task_id=self.task_id,
        )


_LOCKED: Final = Statement(
    lambda: (
        Intent.objects.select_related("target", "operation__target", "agent__owner")
        .select_for_update(of=("self",), no_key=True)
        .filter(pk=Slot("pk", models.UUIDField()))
    )
)

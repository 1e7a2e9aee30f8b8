"""Decisions: one person's verdict on one plan. Policies: what approvals a plan needs."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from approvals.notices.rows import Channel, Notice, NoticeAttempt, NoticedUpTo, Silence
from audit.models import ClockTimestamp
from plans.models import Operation, Plan

__all__ = [
    "Channel",
    "Comment",
    "Decision",
    "Notice",
    "NoticeAttempt",
    "NoticedUpTo",
    "Policy",
    "Silence",
    "StandingDecisions",
]


class Policy(models.Model):
    """What plans need on which the condition holds; all that match add up (B-7)."""

    name = models.CharField(max_length=100, unique=True)
    when = models.TextField(
        max_length=2000,
        help_text=(
            "A CEL condition over target, operation, agent, objects, actions, from, to, delta, "
            'inputs and risk, like operation == "refund" && delta.refunded_cents >= 100000'
        ),
    )
    require: models.JSONField[Any, Any] = models.JSONField(
        default=list,
        blank=True,
        help_text='Whose approval: [{"group": "reviewers", "count": 2}]. Distinct people.',
    )
    note_required = models.BooleanField(default=False, help_text="Who approves says why")
    step_up = models.BooleanField(
        default=False, help_text="Who approves has signed in within the last five minutes"
    )
    dwell_seconds = models.PositiveSmallIntegerField(
        default=0, help_text="How long the plan must be on the screen before it is approved"
    )
    expand_first = models.BooleanField(
        default=False, help_text="Who approves has opened every change, one by one"
    )
    deny = models.BooleanField(default=False, help_text="Nobody can approve such a plan")
    raise_risk = models.CharField(
        max_length=8,
        choices=Operation.Risk.choices,
        blank=True,
        help_text="At least this risk; a policy never lowers one",
    )
    active = models.BooleanField(default=True)

    class Meta:
        verbose_name_plural = "policies"

    def __str__(self) -> str:
        return self.name


class StandingDecisions(models.Manager["Decision"]):
    """Decisions that count; one that was withdrawn is history, not a decision."""

    def get_queryset(self) -> models.QuerySet[Decision]:
        return super().get_queryset().filter(withdrawn_at=None)


class Decision(models.Model):
    """A verdict, with the digest of what the person saw."""

    class Verdict(models.TextChoices):
        APPROVE = "approve", _("approved")
        REJECT = "reject", _("rejected")
        REQUEST_CHANGES = "request_changes", _("requested changes")

    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="decisions")
    round = models.PositiveIntegerField()
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="decisions"
    )
    verdict = models.CharField(max_length=16, choices=Verdict.choices)
    note = models.TextField(blank=True)
    shown_digest = models.CharField(max_length=64)
    decided_at = models.DateTimeField(db_default=ClockTimestamp())
    # How it was given, so that the policies of the send can be held against it (T-3).
    shown_at = models.DateTimeField(null=True, help_text="When the page was shown, as it signed")
    stepped_up = models.BooleanField(default=False, help_text="Signed in shortly before")
    opened = models.BooleanField(default=False, help_text="Opened every change, one by one")
    withdrawn_at = models.DateTimeField(null=True, help_text="Taken back before the quorum (B-9)")
    # B-8: the strip shows it until the person dismisses it (or it committed and was seen).
    dismissed = models.BooleanField(default=False)

    objects = StandingDecisions()
    with_withdrawn = models.Manager["Decision"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            # One verdict per person in a round (B-11): double clicks and two tabs count once.
            models.UniqueConstraint(
                fields=["plan", "round", "person"],
                name="one_decision_per_person_and_round",
                condition=models.Q(withdrawn_at=None),
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["person", "-id"], name="decision_by_person"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} of {self.plan_id} by {self.person_id}"


class Comment(models.Model):
    """What a person said about a plan. Append-only: the database refuses every change of one."""

    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="comments")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="comments"
    )
    text = models.TextField()
    written_at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        ordering: ClassVar[list[str]] = ["id"]

    def __str__(self) -> str:
        return f"comment on {self.plan_id} by {self.person_id}"

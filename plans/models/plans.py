"""Plans: one dry-run result each, revision n of an intent."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q

from audit.models import ClockTimestamp
from audit.recording import Subject
from audit.statements import Slot, Statement
from plans.models.agents import Agent
from plans.models.intents import Intent
from plans.models.targets import Operation, Target
from plans.models.words import Words, text_of_plan
from plans.status import ENGAGED, OPEN, TERMINAL, Status

# Plans that may still write; the order is the index's and the queries'.
STILL_TO_COME: Final = ("verifying", "pending", "approved", "committing")


class PlanQuerySet(models.QuerySet["Plan"]):
    def with_names(self) -> Self:
        """Everything a page, an answer or an event names, in the same query."""
        return self.select_related("target", "operation", "agent__owner", "intent")

    def named(self, pk: int) -> Plan:
        """The plan of this key, `with_names`. Raises Plan.DoesNotExist."""
        return _NAMED.get(pk=pk)

    def locked(self, pk: int) -> Plan:
        """The plan under its row lock. Compare clocks only in a later statement (B-3)."""
        return _LOCKED.get(pk=pk)

    def locked_with_intent(self, pk: int) -> Plan:
        """The plan under its lock, after its intent's: for a change that may reach both."""
        _INTENT_LOCKED.get(pk=pk)
        return self.locked(pk)

    def latest_locked(self, intent: Intent) -> Plan | None:
        """The intent's latest revision under its row lock; the caller holds the intent's."""
        latest = self.filter(intent=intent).order_by("-revision").values_list("pk", flat=True)[:1]
        return self.locked(latest[0]) if latest else None

    def touching(self, plan: Plan) -> Self:
        """Other plans of its target that could still write one of its objects (B-8)."""
        objects = Q()
        for name in plan.objects_touched:
            objects |= Q(actions__contains=[{"target": name}])
        alive = self.filter(objects, target_id=plan.target_id, status__in=STILL_TO_COME)
        return alive.exclude(pk=plan.pk)

    def open(self) -> Self:
        return self.filter(status__in=OPEN)


class Plan(models.Model):
    """One dry-run result. Its status is written by `lifecycle.transition` and nobody else (S-1)."""

    class Verification(models.TextChoices):
        WAITING = "waiting", "not read back yet"
        VERIFIED = "verified", "read back from the target"
        UNAVAILABLE = "unavailable", "the target offers no read-back"

    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="plans")
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="plans")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="plans")
    intent = models.ForeignKey(Intent, on_delete=models.PROTECT, related_name="plans")
    plan_id = models.CharField(max_length=128)
    revision = models.PositiveIntegerField()
    replaces = models.OneToOneField(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="replaced_by"
    )
    task_id = models.CharField(max_length=128)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.VERIFYING)
    status_at = models.DateTimeField(db_default=ClockTimestamp())
    round = models.PositiveIntegerField(default=1)

    # Custody: encrypted, and gone at a terminal status; the digest stays.
    token = models.BinaryField(null=True, editable=False)
    token_sha256 = models.CharField(max_length=64)
    commit_body = models.BinaryField(null=True, editable=False)
    request_sha256 = models.CharField(max_length=64)

    input_fingerprint = models.CharField(max_length=256)
    inputs = models.BinaryField()
    document = models.BinaryField(help_text="The dry-run response as received, without its token")
    # What is shown and decided on: the target's values once verified (T-2). Objects with
    # op, target, field, from, to, in the target's order.
    actions: models.JSONField[Any, Any] = models.JSONField()
    covers: ArrayField[Any, Any] = ArrayField(
        models.CharField(max_length=300), null=True, blank=True
    )
    summary = models.TextField(blank=True)
    reason = models.TextField(blank=True)

    expires_at_text = models.CharField(max_length=40)
    expires_at = models.DateTimeField()
    # Dead for a decision at this instant: expires_at less the send margin (B-3).
    decide_by = models.DateTimeField()
    received_at = models.DateTimeField()
    plan_created_at = models.DateTimeField()

    verification = models.CharField(
        max_length=12, choices=Verification.choices, default=Verification.WAITING
    )
    verified_at = models.DateTimeField(null=True)
    verify_at = models.DateTimeField(null=True, help_text="Next try to read it back")
    verify_tries = models.PositiveIntegerField(default=0)
    mismatches: models.JSONField[Any, Any] = models.JSONField(default=list)
    inputs_confirmed = models.BooleanField(
        default=False, help_text="The target returned the inputs, and they are the same (T-2)"
    )
    connection_version = models.PositiveIntegerField(help_text="The target's, when verified")

    # The oversight's snapshot: plans do not know reviewers.
    title = models.TextField(blank=True)
    asked = models.TextField(blank=True, help_text="What the agent asked for, where it differs")
    risk = models.CharField(max_length=8, choices=Operation.Risk.choices, default="high")
    risk_rank = models.PositiveSmallIntegerField(default=1, help_text="0 critical … 3 low")
    policy_version = models.CharField(max_length=64, blank=True)
    demands: models.JSONField[Any, Any] = models.JSONField(
        default=dict, help_text="What approvals must satisfy, in the oversight's own form (B-7)"
    )
    approvals_required = models.PositiveSmallIntegerField(default=1)
    approvals_given = models.PositiveSmallIntegerField(default=0)
    digest = models.CharField(max_length=64, blank=True)
    likeness = models.CharField(
        max_length=32, blank=True, help_text="The same for plans that do the same to other objects"
    )

    # Fixed in the submission's transaction, never remade (A-4, T-9).
    idempotency_key = models.CharField(max_length=128)
    attempts_made = models.PositiveIntegerField(default=0)
    # When the commit engine must look at this plan next; null: nothing is due.
    next_attempt_at = models.DateTimeField(null=True)
    next_read_at = models.DateTimeField(null=True)
    unknown_since = models.DateTimeField(null=True)
    approved_at = models.DateTimeField(null=True)
    first_sent_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)

    result: models.JSONField[Any, Any] = models.JSONField(null=True)
    conflict: models.JSONField[Any, Any] = models.JSONField(null=True)
    problem: models.JSONField[Any, Any] = models.JSONField(null=True)
    last_reading: models.JSONField[Any, Any] = models.JSONField(null=True)
    applied_out_of_band = models.BooleanField(default=False)
    # B-8: a durable mark; the sweep makes other open plans on these objects stale, then clears it.
    stales_others = models.BooleanField(default=False)

    objects = PlanQuerySet.as_manager()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            # Submission is idempotent on this pair.
            models.UniqueConstraint(fields=["target", "plan_id"], name="one_plan_per_id"),
            # An idempotency key is unique per target for ever.
            models.UniqueConstraint(fields=["target", "idempotency_key"], name="one_plan_per_key"),
            # An agent's `replaces` racing the server's re-plan: the loser is discarded.
            models.UniqueConstraint(fields=["intent", "revision"], name="one_plan_per_revision"),
            # A token never outlives its plan.
            models.CheckConstraint(
                name="terminal_plans_hold_no_token",
                condition=~models.Q(status__in=[s.value for s in sorted(TERMINAL)])
                | models.Q(token__isnull=True, commit_body__isnull=True),
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            # The queue: by risk, then soonest decide_by.
            models.Index(
                fields=["risk_rank", "decide_by", "id"],
                name="plan_queue",
                condition=models.Q(status="pending"),
            ),
            models.Index(
                fields=["decide_by"],
                name="plan_expiry",
                condition=models.Q(status__in=["verifying", "pending", "approved"]),
            ),
            models.Index(
                fields=["next_attempt_at"],
                name="plan_commit_due",
                condition=models.Q(next_attempt_at__isnull=False),
            ),
            models.Index(
                fields=["next_read_at"],
                name="plan_read_due",
                condition=models.Q(next_read_at__isnull=False),
            ),
            models.Index(
                fields=["verify_at"],
                name="plan_verify_due",
                condition=models.Q(status="verifying"),
            ),
            models.Index(
                fields=["id"], name="plan_stales_others", condition=models.Q(stales_others=True)
            ),
            models.Index(fields=["agent", "-id"], name="plan_by_agent"),
            models.Index(fields=["status", "-id"], name="plan_by_status"),
            models.Index(
                fields=["agent", "status"],
                name="plan_agent_open",
                condition=models.Q(status__in=["verifying", "pending"]),
            ),
            models.Index(fields=["task_id"], name="plan_by_task"),
            # Which one of those that are alike comes first?
            models.Index(
                fields=["likeness", "decide_by", "id"],
                name="plan_alike",
                condition=models.Q(status="pending") & ~models.Q(likeness=""),
            ),
            # Written once, when a plan is over: those that are still to come are few.
            GinIndex(
                Words(text_of_plan()),
                name="plan_words",
                condition=models.Q(status__in=[s.value for s in sorted(TERMINAL)]),
            ),
            # Which other plans touch this object (B-8)?
            GinIndex(
                fields=["actions"],
                opclasses=["jsonb_path_ops"],
                name="plan_objects",
                condition=models.Q(status__in=STILL_TO_COME),
            ),
        ]

    def __str__(self) -> str:
        return self.plan_id

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def verified(self) -> bool:
        return self.verification == self.Verification.VERIFIED

    @property
    def window_ms(self) -> int:
        """From its arrival to `decide_by`."""
        return int((self.decide_by - self.received_at).total_seconds() * 1000)

    @property
    def objects_touched(self) -> list[str]:
        """The distinct objects of the actions, in the target's order."""
        return list(dict.fromkeys(str(action["target"]) for action in self.actions))

    def may_have_been_sent(self) -> bool:
        """S-4: an attempt that may have been sent exists (a `not_sent` one does not count)."""
        return self.status in ENGAGED and self.attempts.maybe_sent().exists()

    @property
    def attended(self) -> bool:
        """A person has approved it, in this round or one before (R-3)."""
        return self.round > 1 or self.approvals_given > 0 or self.approved_at is not None

    def is_open(self) -> bool:
        """S-4: not terminal and not in flight."""
        return not self.is_terminal and not self.may_have_been_sent()

    def subject(self) -> Subject:
        """This plan as an event names it."""
        return Subject(
            target=self.target.name,
            operation=self.operation.name,
            agent=self.agent.name,
            plan_id=self.plan_id,
            intent_id=self.intent_id,
            task_id=self.task_id,
            title=self.title,
        )


_PK: Final = Slot("pk", models.BigIntegerField())
_NAMED: Final = Statement(lambda: Plan.objects.with_names().filter(pk=_PK))
_INTENT_LOCKED: Final = Statement(
    lambda: Intent.objects.select_for_update(of=("self",), no_key=True).only("pk").filter(plans=_PK)
)
_LOCKED: Final = Statement(
    lambda: Plan.objects.with_names().select_for_update(of=("self",)).filter(pk=_PK)
)

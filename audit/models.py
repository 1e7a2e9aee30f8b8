"""The audit trail: one append-only table. Triggers and grants refuse everything but INSERT."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Cast, Greatest


class ClockTimestamp(models.Func):
    """PostgreSQL's own clock at this instant, not the transaction's start (C-1)."""

    function = "clock_timestamp"
    template = "%(function)s()"
    output_field = models.DateTimeField()


class StatementTimestamp(models.Func):
    """The clock when the statement began: one instant for all of it, which indexes can serve."""

    function = "statement_timestamp"
    template = "%(function)s()"
    output_field = models.DateTimeField()


class CurrentXid(models.Func):
    """`pg_current_xact_id()` as a bigint: seals order rows by it below a snapshot's horizon."""

    function = "pg_current_xact_id"
    template = "%(function)s()::text"
    output_field = models.TextField()


class CompletedXid(models.Func):
    """The latest transaction that has ended, of any, when the statement that asks began."""

    template = "pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1"
    output_field = models.BigIntegerField()


class CurrentEra(models.Func):
    """The era now in force; raised after a restore, where transaction ids start again (L-2)."""

    function = "audit_current_era"
    template = "%(function)s()"
    output_field = models.IntegerField()


class CurrentPlace(models.Func):
    """Which cluster, timeline and database this is: another one means a restore (L-2)."""

    function = "audit_place"
    template = "%(function)s()"
    output_field = models.TextField()


class Era(models.Model):
    """One row per life of the database cluster: after a restore a new era begins."""

    number = models.PositiveIntegerField(primary_key=True)
    place = models.TextField(db_default=CurrentPlace())
    began_at = models.DateTimeField(db_default=ClockTimestamp())
    reason = models.TextField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = []

    def __str__(self) -> str:
        return f"era {self.number}"


class Event(models.Model):
    """One row of the audit trail, with the words of its moment snapshotted (L-1).

    `xid` and `id` order rows; `at` is only shown, since clocks step back (FM-36). `xid` is never
    below that of a transaction whose end came first: one that took its id and then waited for a
    lock tells what it did after what it waited for.
    """

    at = models.DateTimeField(db_default=ClockTimestamp())
    era = models.PositiveIntegerField(db_default=CurrentEra())
    xid = models.BigIntegerField(
        db_default=Greatest(Cast(CurrentXid(), models.BigIntegerField()), CompletedXid())
    )
    # No choices: a new word must not cost a migration.
    action = models.CharField(max_length=64)

    actor_kind = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=64)
    actor_label = models.CharField(max_length=200)

    agent = models.CharField(max_length=100, blank=True)
    target = models.CharField(max_length=100, blank=True)
    operation = models.CharField(max_length=100, blank=True)
    plan_id = models.CharField(max_length=128, blank=True)
    intent_id = models.UUIDField(null=True, blank=True)
    task_id = models.CharField(max_length=128, blank=True)
    title = models.TextField(blank=True)
    from_status = models.CharField(max_length=32, blank=True)
    to_status = models.CharField(max_length=32, blank=True)

    ip = models.GenericIPAddressField(null=True, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    details: models.JSONField[Any, Any] = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar[list[str]] = ["-id"]
        indexes: ClassVar[list[models.Index]] = [
            # The events feed and the sealer walk by (xid, id) below the horizon (A-14, L-2).
            models.Index(fields=["xid", "id"], name="audit_event_feed"),
            models.Index(fields=["target", "plan_id", "id"], name="audit_event_plan"),
            models.Index(fields=["intent_id", "id"], name="audit_event_intent"),
            models.Index(fields=["agent", "id"], name="audit_event_agent"),
            models.Index(fields=["actor_label", "id"], name="audit_event_actor"),
            models.Index(fields=["action", "id"], name="audit_event_action"),
        ]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor_label}"


class Seal(models.Model):
    """Closes all events up to a place in the trail, by a signed hash that continues the last (L-2).

    `audit/offline/formats.py` says what is hashed and signed. The manifest holds 48 bytes an event
    (xid, id, SHA-256), so that a bad row can be named and not only counted.
    """

    number = models.BigIntegerField(primary_key=True)
    era = models.PositiveIntegerField()
    first_xid = models.BigIntegerField()
    first_id = models.BigIntegerField()
    last_xid = models.BigIntegerField()
    last_id = models.BigIntegerField()
    count = models.PositiveIntegerField()
    # Of this seal and all before it.
    total = models.BigIntegerField()
    root = models.CharField(max_length=64)
    previous = models.CharField(max_length=64, unique=True)
    key_id = models.CharField(max_length=16)
    at = models.DateTimeField()
    hash = models.CharField(max_length=64, unique=True)
    signature = models.CharField(max_length=128)
    manifest = models.BinaryField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = []

    def __str__(self) -> str:
        return f"seal {self.number}"

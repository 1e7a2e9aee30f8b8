"""Events to seal, and what a person with every right of the database can do to them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction

from audit import actors, seals
from audit.actions import Action
from audit.models import Event
from audit.recording import Subject, record
from audit.seals import MOST_ROWS

TABLES = ("audit_event", "audit_seal", "audit_era")


def write(count: int = 1, **details: Any) -> list[Event]:
    """So many events, each in a transaction of its own."""
    events = []
    for number in range(count):
        with transaction.atomic():
            subject = Subject(target="billing", plan_id=f"plan_{number}", title="Refund 280.00 USD")
            found = {"number": number, "changed": [{"path": "refunded_cents", "current": 20000}]}
            events.append(record(Action.PLAN_EXPIRED, actors.CLOCK, subject, found | details))
    return events


def settle() -> None:
    """Wait until the horizon has passed all events: other tests' transactions hold it back."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT coalesce(max(xid), 0) <"
                " pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
                " FROM audit_event WHERE era = audit_current_era()"
            )
            if cursor.fetchone()[0]:
                return
        time.sleep(0.02)
    raise AssertionError("some transaction of this cluster does not end")


def seal_all(most: int = MOST_ROWS) -> int:
    """What the sweeper does, when nothing holds it back."""
    settle()
    return seals.seal_all(most)


def sealed(*counts: int) -> list[Event]:
    """Events under one seal for each count."""
    events = []
    for count in counts:
        events += write(count)
        assert seal_all() == count
    return events


def sql(statement: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


@contextmanager
def triggers_off() -> Iterator[None]:
    """What a superuser does first."""
    for table in TABLES:
        sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    try:
        yield
    finally:
        for table in TABLES:
            sql(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def attack(statement: str, *values: Any) -> None:
    with triggers_off():
        sql(statement, *values)

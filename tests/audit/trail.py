"""Events to seal, and what a person with every right of the database can do to them.

Most tests run in one transaction that is rolled back, ten times faster than a flush: there the
horizon is lifted (`one_transaction` in conftest.py) and events get xids as if each had its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.test import TestCase

from audit import actors, seals
from audit.actions import Action
from audit.models import Event
from audit.offline.report import Finding, Report
from audit.recording import Subject, record
from audit.seals import MOST_ROWS


def write(count: int = 1, **details: Any) -> list[Event]:
    """So many events, each in a transaction of its own."""
    return [_event({"number": number} | details) for number in range(count)]


def _event(details: dict[str, Any]) -> Event:
    shared = connection.in_atomic_block
    with transaction.atomic():
        subject = Subject(target="billing", plan_id="plan_b1d07", title="Refund 280.00 USD")
        details |= {"changed": [{"path": "refunded_cents", "current": 20000}]}
        event = record(Action.PLAN_EXPIRED, actors.CLOCK, subject, details)
    if shared:
        attack("UPDATE audit_event SET xid = %s WHERE id = %s", 9 + Event.objects.count(), event.pk)
    event.refresh_from_db()
    return event


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
    if connection.in_atomic_block:
        with TestCase.captureOnCommitCallbacks(execute=True):
            return seals.seal_all(most)
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
    """What a superuser does first; quicker than ALTER TABLE … DISABLE TRIGGER, and the same."""
    sql("SET session_replication_role = replica")
    try:
        yield
    finally:
        sql("SET session_replication_role = DEFAULT")


def attack(statement: str, *values: Any) -> None:
    with triggers_off():
        sql(statement, *values)


def first(report: Report) -> Finding:
    assert not report.holds
    return report.findings[0]


def cut_tail(number: int) -> None:
    """The newest seals from `number` on, with all events under them."""
    attack(
        "DELETE FROM audit_event WHERE (era, xid, id) >="
        " (SELECT era, first_xid, first_id FROM audit_seal WHERE number = %s)",
        number,
    )
    attack("DELETE FROM audit_seal WHERE number >= %s", number)

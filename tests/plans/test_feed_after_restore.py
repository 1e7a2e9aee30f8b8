"""After a restore transaction ids start again; no agent loses an event by it (A-14, L-2)."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from audit import actors, eras
from audit.actions import Action
from audit.recording import Subject, record
from plans import changes
from plans.feed import Cursor, read
from plans.models import Agent

pytestmark = pytest.mark.django_db(transaction=True)


def happen(agent: Agent, plan_id: str) -> int:
    with transaction.atomic():
        subject = Subject(agent=agent.name, plan_id=plan_id)
        return record(Action.PLAN_EXPIRED, actors.CLOCK, subject, to_status="expired").pk


def test_events_of_both_eras_are_read_once_and_in_order(support_agent: Agent) -> None:
    happen(support_agent, "before")
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("UPDATE audit_event SET xid = xid + 1000000000")
        cursor.execute("SET session_replication_role = DEFAULT")
    assert eras.check() == 2
    horizon = changes.look(None).horizon
    after = happen(support_agent, "after")
    first, cursor_then = read(support_agent, Cursor(), 1)
    second, cursor_now = read(support_agent, cursor_then, 10)
    assert [item["plan_id"] for item in first + second] == ["before", "after"]
    assert read(support_agent, cursor_now, 10) == ([], cursor_now)
    # Who waits is woken by what is new, and not by all that has a larger number.
    assert set(map(abs, changes.look(horizon).keys_by_event)) == {after}

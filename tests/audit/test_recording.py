"""The trail takes events and nothing else (L-1)."""

from __future__ import annotations

import uuid

import pytest
from django.db import connection, transaction
from django.db.utils import ProgrammingError

from audit import actors
from audit.actions import Action
from audit.models import Era, Event
from audit.recording import Subject, origin, record

SUBJECT = Subject(
    target="billing",
    operation="refund",
    agent="support-agent",
    plan_id="plan_b1d07",
    intent_id=uuid.UUID(int=7),
    task_id="t-1",
    title="Refund 280.00 USD on invoice/4412",
)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_event SET actor_label = 'mallory'",
        "DELETE FROM audit_event",
        "TRUNCATE audit_event",
        "TRUNCATE audit_event CASCADE",
    ],
)
@pytest.mark.django_db
def test_it_refuses_to_change_what_is_written(statement: str) -> None:
    record(Action.PLAN_SUBMITTED, actors.agent(1, "support-agent"), SUBJECT)
    with (
        pytest.raises(ProgrammingError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    assert Event.objects.get().actor_label == "support-agent"


@pytest.mark.django_db(transaction=True)
def test_it_refuses_an_event_outside_a_transaction() -> None:
    with pytest.raises(RuntimeError, match="transaction of its change"):
        record(Action.PLAN_EXPIRED, actors.CLOCK, SUBJECT)
    assert not Event.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", ["first", "second"])
def test_every_transactional_test_begins_with_an_empty_trail_in_era_one(turn: str) -> None:
    assert not Event.objects.exists()
    assert [era.number for era in Era.objects.all()] == [1]
    with transaction.atomic():
        event = record(Action.PLAN_EXPIRED, actors.CLOCK, SUBJECT, {"turn": turn})
    event.refresh_from_db()
    assert event.era == 1


@pytest.mark.django_db
def test_an_event_keeps_the_words_of_its_moment() -> None:
    with origin("192.0.2.7", "req-1"):
        inside = record(Action.PLAN_SUBMITTED, actors.agent(1, "support-agent"), SUBJECT)
    outside = record(Action.PLAN_EXPIRED, actors.CLOCK, SUBJECT)
    inside.refresh_from_db()
    outside.refresh_from_db()
    assert (inside.ip, inside.request_id) == ("192.0.2.7", "req-1")
    assert (outside.ip, outside.request_id) == (None, "")
    assert inside.title == SUBJECT.title
    assert inside.xid == outside.xid
    assert inside.at <= outside.at

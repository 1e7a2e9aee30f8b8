"""Looking at the trail for whoever waits: no event is missed, however late it commits."""

from __future__ import annotations

import time
import uuid

import psycopg
import pytest
from django.db import connection, transaction

from audit.actions import Action
from audit.actors import CLOCK
from audit.recording import Subject, record
from plans.changes import EVERYBODY, agent_key, intent_key, intents_of, look, target_key

pytestmark = pytest.mark.django_db(transaction=True)

INTENT = uuid.UUID(int=7)
KEYS = (intent_key(INTENT), agent_key("support-agent"), target_key("billing"))


def event() -> int:
    with transaction.atomic():
        subject = Subject(target="billing", agent="support-agent", intent_id=INTENT)
        return record(Action.PLAN_VERIFIED, CLOCK, subject).pk


def another_connection() -> psycopg.Connection[tuple[object, ...]]:
    database = connection.settings_dict
    return psycopg.connect(
        host=database["HOST"],
        port=database["PORT"],
        user=database["USER"],
        password=database["PASSWORD"],
        dbname=database["NAME"],
    )


def eventually(since: int, found: dict[int, tuple[str, ...]]) -> bool:
    """Other databases of the server hold the horizon back, too, for as long as they write."""
    deadline = time.monotonic() + 60
    while (seen := look(since).keys_by_event) != found and time.monotonic() < deadline:
        time.sleep(0.02)
    return seen == found


def test_a_look_finds_what_happened_since_the_one_before() -> None:
    start = look(None)
    assert start.keys_by_event == {}
    pk = event()
    assert KEYS in look(start.horizon).keys_by_event.values()
    assert eventually(start.horizon, {pk: KEYS})
    assert eventually(look(start.horizon).horizon, {})


def test_an_event_above_the_horizon_counts_again_below_it() -> None:
    with another_connection() as slow:
        # A transaction that writes something, and takes its time.
        slow.execute("SELECT pg_current_xact_id()")
        start = look(None)
        pk = event()
        first = look(start.horizon)
        assert first.keys_by_event == {-pk: KEYS}
        assert look(first.horizon).keys_by_event == {-pk: KEYS}
        slow.rollback()
    assert eventually(first.horizon, {pk: KEYS})


def test_an_event_that_commits_late_is_found() -> None:
    with another_connection() as slow:
        slow.execute("SELECT pg_current_xact_id()")
        slow.execute(
            "INSERT INTO audit_event (action, actor_kind, actor_id, actor_label, agent, target,"
            " operation, plan_id, task_id, title, from_status, to_status, request_id, details)"
            " VALUES ('plan.verified', '', '', '', 'slow-agent', '', '', '', '', '', '', '', '',"
            " '{}')"
        )
        horizon = look(None).horizon
        for _ in range(3):
            event()
            horizon = look(horizon).horizon
        slow.commit()
    assert (agent_key("slow-agent"),) in look(horizon).keys_by_event.values()


@pytest.mark.parametrize(
    ("action", "keys"),
    [
        (Action.EMERGENCY_STOPPED, (EVERYBODY,)),
        (Action.CONFIG_APPLIED, (EVERYBODY,)),
        (Action.SIGNED_IN, ()),
    ],
)
def test_only_the_emergency_stop_and_new_rules_concern_everybody(
    action: Action, keys: tuple[str, ...]
) -> None:
    start = look(None)
    with transaction.atomic():
        record(action, CLOCK, Subject())
    assert list(look(start.horizon).keys_by_event.values()) == [keys]


def test_the_intents_among_the_keys() -> None:
    assert intents_of(KEYS) == {str(INTENT)}

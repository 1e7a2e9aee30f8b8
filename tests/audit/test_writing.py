"""Rows that are written by statements composed once are the rows that Django would write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from audit import actors
from audit.actions import Action
from audit.models import Event
from audit.recording import Subject, draft
from audit.writing import Change, FilledIn, insert, insert_and_change
from plans.models import Agent, Plan

pytestmark = pytest.mark.django_db


def test_a_new_row_is_stored_as_save_would(ada: User) -> None:
    row = insert(Agent(name="inserted", owner=ada))
    assert row.pk
    assert not row._state.adding
    columns = [field.attname for field in Agent._meta.concrete_fields]
    stored = Agent.objects.values(*columns).get(pk=row.pk)
    assert {column: getattr(row, column) for column in columns} == stored


def test_what_the_database_fills_in_comes_back() -> None:
    event = Event(action="x", actor_kind="clock", actor_id="", actor_label="clock")
    with transaction.atomic():
        insert(event)
    stored = Event.objects.get(pk=event.pk)
    filled_in = (event.at, event.era, event.xid, event.details)
    assert filled_in == (stored.at, stored.era, stored.xid, stored.details)


def test_a_rule_of_the_database_refuses_a_row(ada: User) -> None:
    insert(Agent(name="first", owner=ada))
    with pytest.raises(IntegrityError), transaction.atomic():
        insert(Agent(name="first", owner=ada))


@pytest.fixture
def plan(make_plan: Callable[..., Plan]) -> Plan:
    return make_plan()


@pytest.fixture
def other(make_plan: Callable[..., Plan]) -> Plan:
    return make_plan()


def changed(plan: Plan, guard: dict[str, Any], columns: dict[str, Any]) -> Event:
    with transaction.atomic():
        event = draft(Action.PLAN_VERIFIED, actors.CLOCK, Subject(plan_id=plan.plan_id))
        return insert_and_change(event, Change(Plan, plan.pk, guard, columns))


def test_a_row_and_the_change_it_tells_of_are_one_statement(plan: Plan, other: Plan) -> None:
    columns: dict[str, Any] = {
        "title": "100 % “new”",
        "result": {"a": [1, None]},
        "problem": None,
        "covers": ["one", "two"],
        "replaces_id": other.pk,
        "token": b"\x00sealed",
        "closed_at": FilledIn("at"),
    }
    with CaptureQueriesContext(connection) as asked:
        event = changed(plan, {"status": plan.status, "round": 1}, columns)
    assert len([query for query in asked if "SAVEPOINT" not in query["sql"]]) == 1
    assert Event.objects.get().pk == event.pk
    stored = Plan.objects.get(pk=plan.pk)
    assert stored.closed_at == event.at
    assert stored.replaces_id == other.pk
    assert stored.token is not None
    assert bytes(stored.token) == b"\x00sealed"
    told = {name: getattr(stored, name) for name in ("title", "result", "problem", "covers")}
    assert told == {name: columns[name] for name in told}
    untouched = Plan.objects.get(pk=other.pk)
    assert (untouched.title, untouched.closed_at) == (other.title, other.closed_at)


def test_null_is_written_as_django_writes_it(plan: Plan, other: Plan) -> None:
    changed(plan, {}, {"problem": None, "covers": []})
    Plan.objects.filter(pk=other.pk).update(problem=None, covers=[])
    assert set(Plan.objects.filter(problem__isnull=True)) == {plan, other}
    assert Plan.objects.get(pk=plan.pk).covers == []


def test_a_guard_that_does_not_hold_undoes_both(plan: Plan) -> None:
    with pytest.raises(RuntimeError, match="not as its guard says"):
        changed(plan, {"status": "committed"}, {"title": "never"})
    assert not Event.objects.exists()
    assert Plan.objects.get(pk=plan.pk).title == plan.title


def test_too_long_a_value_is_refused_and_not_cut(plan: Plan) -> None:
    with pytest.raises(Exception, match="too long"):
        changed(plan, {}, {"covers": ["x" * 301]})
    assert not Event.objects.exists()

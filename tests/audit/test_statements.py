"""Statements that are composed once answer as the queries they were made of."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection, models, transaction
from django.db.models import Count, QuerySet
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from audit.statements import Keys, Slot, Statement
from plans.models import Agent, Intent, Plan

pytestmark = pytest.mark.django_db
NAME = Slot("name", models.TextField())


def owned(name: str | Slot) -> QuerySet[Agent]:
    return Agent.objects.filter(name=name).select_related("owner").annotate(keys=Count("api_keys"))


@pytest.fixture
def agents(ada: User, grace: User) -> list[Agent]:
    make = Agent.objects.create
    return [make(name="first", owner=ada), make(name="second", owner=grace)]


def test_a_row_is_the_same_as_the_querysets(agents: list[Agent]) -> None:
    statement = Statement(lambda: owned(NAME))
    for agent in agents:
        found, wanted = statement.get(name=agent.name), owned(agent.name).get()
        columns = {field.attname for field in Agent._meta.concrete_fields} | {"keys"}
        assert {c: getattr(found, c) for c in columns} == {c: getattr(wanted, c) for c in columns}
        with CaptureQueriesContext(connection) as asked:
            assert found.owner == wanted.owner
        assert len(asked) == 0


def test_it_asks_once_and_with_the_values_of_the_call(agents: list[Agent]) -> None:
    statement = Statement(lambda: owned(NAME))
    statement.first(name="nobody")
    with CaptureQueriesContext(connection) as asked:
        assert [agent.name for agent in statement.all(name="second")] == ["second"]
    assert len(asked) == 1


def test_what_is_not_there_is_none_or_does_not_exist(agents: list[Agent]) -> None:
    statement = Statement(lambda: owned(NAME))
    assert statement.first(name="nobody") is None
    with pytest.raises(Agent.DoesNotExist):
        statement.get(name="nobody")


def test_deferred_columns_are_fetched_when_they_are_asked_for(agents: list[Agent]) -> None:
    found = Statement(lambda: Agent.objects.filter(name=NAME).only("pk")).get(name="first")
    with CaptureQueriesContext(connection) as asked:
        assert found.name == "first"
    assert len(asked) == 1


def test_a_slice_and_an_order_are_kept(agents: list[Agent]) -> None:
    statement = Statement(lambda: Agent.objects.order_by("-name")[:1])
    assert [agent.name for agent in statement.all()] == ["second"]


def test_a_value_is_a_value_and_never_sql() -> None:
    name = "x' OR '1'='1"
    Group.objects.create(name=name)
    statement = Statement(lambda: Group.objects.filter(name=NAME))
    assert [group.name for group in statement.all(name=name)] == [name]
    assert statement.all(name="%s") == []


@pytest.mark.django_db(transaction=True)
def test_a_lock_outside_a_transaction_is_refused(agents: list[Agent]) -> None:
    statement = Statement(lambda: Agent.objects.filter(name=NAME).select_for_update())
    with transaction.atomic():
        assert statement.get(name="first") == agents[0]
    with pytest.raises(TransactionManagementError):
        statement.get(name="first")


def test_keys_of_several_querysets_come_with_one_statement(
    agents: list[Agent], make_plan: Callable[..., Plan]
) -> None:
    plan = make_plan()
    keys = Keys(
        lambda: [
            Agent.objects.order_by("-name").values_list("pk", flat=True)[:2],
            Intent.objects.filter(task_id="100% never").values_list("pk", flat=True),
            Plan.objects.filter(status="pending").values_list("intent_id", flat=True),
            Agent.objects.order_by("name").values_list("owner_id", flat=True),
        ]
    )
    first, second = agents
    owners = [agent.owner_id for agent in Agent.objects.order_by("name")]
    keys.all()
    with CaptureQueriesContext(connection) as asked:
        found = keys.all()
    assert len(asked) == 1
    newest = Agent.objects.get(name="support-agent")
    assert found == [[newest.pk, second.pk], [], [plan.intent_id], owners]
    assert first.pk not in found[0]


@pytest.mark.django_db(transaction=True)
def test_threads_share_it(agents: list[Agent]) -> None:
    statement = Statement(lambda: owned(NAME))

    def ask(number: int) -> str:
        try:
            return statement.get(name=agents[number % 2].name).name
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(64)))
    assert found == ["first", "second"] * 32

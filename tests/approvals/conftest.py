"""Plans without a target that answers; and what people have: groups, sessions, webhooks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from audit.actors import person
from plans import receivers
from plans.models import Agent, Operation, Target, Webhook
from tests.approvals.paper_plans import MakePlan, maker
from tests.approvals.webhook_addresses import URL


@pytest.fixture
def make_plan(refund: Operation, support_agent: Agent) -> MakePlan:
    """`make_plan(status="pending", **columns)`: a verified refund of 480.00 USD, ten minutes."""
    return maker(refund, support_agent)


@pytest.fixture
def leads(billing: Target, grace: User) -> Group:
    """Grace's second group."""
    return Group.objects.get(name="leads")


@pytest.fixture
def sign_in(client: Client) -> Callable[[User], Client]:
    def as_person(person: User) -> Client:
        client.force_login(person)
        return client

    return as_person


@pytest.fixture
def webhook(support_agent: Agent, otto: User) -> Webhook:
    return receivers.add(support_agent, URL, internal=False, actor=person(otto))[0]

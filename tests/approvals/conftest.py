"""Plans at any point of their life, without a target that answers."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User

from plans.models import Agent, Operation, Target
from tests.approvals.paper_plans import MakePlan, maker


@pytest.fixture
def make_plan(refund: Operation, support_agent: Agent) -> MakePlan:
    """`make_plan(status="pending", **columns)`: a verified refund of 480.00 USD, ten minutes."""
    return maker(refund, support_agent)


@pytest.fixture
def leads(billing: Target, grace: User) -> Group:
    """Grace's second group."""
    return Group.objects.get(name="leads")

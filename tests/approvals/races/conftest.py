"""A plan that can be committed, and eight people who may all decide about it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from plans import custody
from plans.enrolment import commit_body
from plans.models import Plan, Target
from plans.oversight import oversight
from tests.approvals.paper_plans import MakePlan
from tests.approvals.races.racing import THREADS
from tests.faults.scripted_target import ScriptedTarget
from tests.plans.engine import TOKEN, fresh


@pytest.fixture
def target(billing: Target) -> Iterator[ScriptedTarget]:
    with ScriptedTarget() as scripted:
        billing.base_url = scripted.base_url
        billing.save()
        yield scripted


@pytest.fixture
def plan(target: ScriptedTarget, make_plan: MakePlan, people: list[User]) -> Plan:
    """A plan that can be committed, before eight people who may all decide."""
    made = make_plan()
    body = commit_body(TOKEN, made.input_fingerprint)
    secrets = {"token": custody.encrypt(TOKEN.encode()), "commit_body": custody.encrypt(body)}
    Plan.objects.filter(pk=made.pk).update(**secrets, **oversight().assess(made).columns())
    return fresh(made)


@pytest.fixture
def people(ada: User) -> list[User]:
    others = [User.objects.create(username=f"reviewer-{n}") for n in range(1, THREADS)]
    for person in others:
        person.groups.set(ada.groups.all())
    return [ada, *others]

"""What the page of a plan calls things while it waits, while it is held and when it is over."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from audit import actors
from plans import emergency
from plans.models import Operation, Plan
from plans.status import Status

type MakePlan = Callable[..., Plan]
pytestmark = pytest.mark.django_db


@pytest.fixture
def page(client: Client, ada: User) -> Callable[[Plan], str]:
    """The page of a plan as Ada gets it."""
    client.force_login(ada)
    return lambda plan: client.get(f"/plans/{plan.target.name}/{plan.plan_id}/").text


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (Status.PENDING, "Now"),
        (Status.APPROVED, "Now"),
        (Status.UNKNOWN, "Before"),
        (Status.COMMITTED, "Before"),
        (Status.EXPIRED, "Before"),
        (Status.REJECTED, "Before"),
    ],
)
def test_old_values_are_those_of_before_once_it_is_over(
    page: Callable[[Plan], str], make_plan: MakePlan, status: Status, name: str
) -> None:
    text = page(make_plan(status=status))
    assert f'<th scope="col">{name}</th>' in text
    assert text.count(f'data-label="{name}"') == 2


def test_the_button_says_that_a_commit_waits_during_the_emergency_stop(
    page: Callable[[Plan], str], make_plan: MakePlan
) -> None:
    plan = make_plan()
    assert ">Approve and commit now<" in page(plan)
    emergency.stop("The agent runs wild.", actor=actors.OPERATOR)
    text = page(plan)
    assert ">Approve: the commit waits<" in text
    assert "Sending is stopped: an approved plan waits." in text
    assert "commit now" not in text
    assert "to approve and commit" not in text


def test_the_note_says_for_what_it_is_needed(
    page: Callable[[Plan], str], make_plan: MakePlan
) -> None:
    assert 'placeholder="Note: needed to reject or ask for changes"' in page(make_plan())


@pytest.mark.parametrize(
    ("status", "told"), [(Status.PENDING, True), (Status.STALE, False), (Status.EXPIRED, False)]
)
def test_approvals_have_a_heading_where_there_is_something_below_it(
    page: Callable[[Plan], str], make_plan: MakePlan, status: Status, told: bool
) -> None:
    assert ('id="approvals-title"' in page(make_plan(status=status))) is told


@pytest.mark.parametrize("reversible", [True, False])
def test_other_open_plans_stand_apart_from_what_cannot_be_undone(
    page: Callable[[Plan], str], make_plan: MakePlan, refund: Operation, reversible: bool
) -> None:
    Operation.objects.filter(pk=refund.pk).update(reversible=reversible)
    plan, other = make_plan(), make_plan()
    text = page(plan)
    others = re.search(r'<section class="note warn" id="others".*?</section>', text, re.S)
    assert others is not None
    assert other.plan_id in others[0]
    undo = re.search(r'<section class="note bad" aria-labelledby="undo-title">.*?</section>', text)
    assert (undo is None) is reversible
    assert undo is None or other.plan_id not in undo[0]


def test_the_lines_of_the_head_never_begin_with_a_dot(
    page: Callable[[Plan], str], make_plan: MakePlan
) -> None:
    about = re.search(r'<p class="about">.*?</p>', page(make_plan()), re.S)
    assert about is not None
    assert about[0].count("&nbsp;·") == about[0].count("·") == 4


def test_words_of_the_bar_do_not_run_together(
    page: Callable[[Plan], str], make_plan: MakePlan
) -> None:
    hint = re.search(r'<p class="src hint".*?</p>', page(make_plan()), re.S)
    assert hint is not None
    assert "</span><span" not in hint[0]

"""Warnings at half and a fifth of the window, without JavaScript: row, plan and title."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.warnings import Stage, stage
from plans.clock import clock
from plans.models import Plan
from tests.approvals.paper_plans import MakePlan

pytestmark = pytest.mark.django_db
WINDOW = timedelta(seconds=1_000)


def waiting(make_plan: MakePlan, left: float, **columns: object) -> Plan:
    """A plan of which so many thousandths of its window are left."""
    now = clock()
    decide_by = now + WINDOW * left / 1_000
    return make_plan(decide_by=decide_by, received_at=decide_by - WINDOW, **columns)


@pytest.mark.parametrize(
    ("left", "window", "found"),
    [
        (1_000, 1_000, Stage.PLENTY),
        (501, 1_000, Stage.PLENTY),
        (500, 1_000, Stage.HALF),
        (201, 1_000, Stage.HALF),
        (200, 1_000, Stage.FIFTH),
        (0, 1_000, Stage.FIFTH),
        (0, 0, Stage.FIFTH),
    ],
)
def test_what_is_left_in_words(left: int, window: int, found: Stage) -> None:
    assert stage(left, window) is found


def shown_badges(page: str) -> list[str]:
    return re.findall(r'data-stage="(\w+)">', page)


@pytest.mark.parametrize(
    ("left", "badge", "title"), [(900, [], ""), (450, ["half"], "Half left · "),
                                 (150, ["fifth"], "Last fifth · ")]
)  # fmt: skip
def test_row_plan_and_title_say_it(
    client: Client, ada: User, make_plan: MakePlan, left: int, badge: list[str], title: str
) -> None:
    plan = waiting(make_plan, left)
    client.force_login(ada)
    queue = client.get("/review/").text
    assert shown_badges(queue.partition('class="detail"')[0]) == badge
    assert f"<title>(1) {title}Review · Countersign</title>" in queue
    address = f"/plans/billing/{plan.plan_id}/"
    page = client.get(address).text
    assert shown_badges(page) == badge
    assert f"<title>{title}Refund 480.00 USD on invoice/4412 · Countersign</title>" in page
    fragment = client.get(address, headers={"HX-Request": "true"}).text
    assert f"<title>{title}Refund" in fragment


def test_the_title_tells_of_the_most_urgent_row(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    for left in (900, 400, 100):
        waiting(make_plan, left)
    client.force_login(ada)
    assert "<title>(3) Last fifth · Review" in client.get("/review/").text


def test_nobody_is_warned_of_what_others_decide_or_what_is_over(
    client: Client, dana: User, ada: User, make_plan: MakePlan
) -> None:
    waiting(make_plan, 100)
    client.force_login(dana)
    page = client.get("/review/?tab=others").text
    assert "data-warns" not in page.partition('class="detail"')[0]
    over = make_plan(status="rejected", closed_at=clock())
    client.force_login(ada)
    assert shown_badges(client.get(f"/plans/billing/{over.plan_id}/").text) == []

"""Lists over REST: in pages, narrowed, and for the price of three queries (A-7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.models import Decision
from plans.envelopes import PlanPage
from plans.lifecycle import Verb
from plans.models import Plan
from tests.plans.api_calls import Api, submission
from tests.plans.ways import follow

pytestmark = pytest.mark.django_db


@pytest.fixture
def seven(api: Api) -> list[str]:
    names = [f"pl_{n}" for n in range(7)]
    for n, name in enumerate(names):
        api.post("/plans", submission(name, task_id=f"task-{n % 2}"))
    return names[::-1]


def names(page: Any) -> list[str]:
    assert page.status_code == 200, page.content
    return [item["plan_id"] for item in page.json()["items"]]


def test_pages_are_newest_first_and_miss_nothing(api: Api, seven: list[str]) -> None:
    found: list[str] = []
    cursor: dict[str, str] = {}
    for _ in range(4):
        page = api.get("/plans", {"limit": "2", **cursor})
        PlanPage.model_validate(page.json())
        found += names(page)
        cursor = {"cursor": page.json()["next"]}
        if len(found) == 2:
            # One that arrives meanwhile is newer than every page that follows.
            api.post("/plans", submission("pl_late"))
    assert found == seven
    assert cursor == {"cursor": None}


def test_the_last_full_page_says_that_it_is_the_last(api: Api, seven: list[str]) -> None:
    assert api.get("/plans", {"limit": "7"}).json()["next"] is None


def test_filters_narrow_the_list(api: Api, seven: list[str]) -> None:
    follow(Plan.objects.get(plan_id="pl_3"), Verb.VERIFY)
    intent = Plan.objects.get(plan_id="pl_4").intent_id
    assert names(api.get("/plans", {"status": "pending"})) == ["pl_3"]
    assert names(api.get("/plans", {"task_id": "task-1"})) == ["pl_5", "pl_3", "pl_1"]
    assert names(api.get("/plans", {"intent_id": str(intent)})) == ["pl_4"]
    assert names(api.get("/plans", {"status": "pending", "task_id": "task-0"})) == []


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "invalid-limit"),
        ("limit=-1", "invalid-limit"),
        ("limit=1000000000", "invalid-limit"),
        ("limit=201", "invalid-limit"),
        ("limit=", "invalid-limit"),
        ("limit=%D9%A4", "invalid-limit"),
        ("limit=5%0A", "invalid-limit"),
        ("cursor=", "invalid-cursor"),
        ("cursor=junk", "invalid-cursor"),
        ("cursor=%00", "invalid-cursor"),
        ("cursor=%F0%9F%98%80:x", "invalid-cursor"),
        ("status=done", "invalid-parameter"),
        ("status=%00", "invalid-parameter"),
        ("status=", "invalid-parameter"),
        ("task_id=a%00b", "invalid-parameter"),
        ("intent_id=1", "invalid-parameter"),
        ("intent_id=%00", "invalid-parameter"),
        ("page=2", "invalid-parameter"),
        ("status=pending&status=expired", "invalid-parameter"),
        ("%FF=%FF", "invalid-parameter"),
    ],
)  # BI-48
def test_a_bad_query_is_refused(api: Api, plan: Plan, query: str, code: str) -> None:
    answer = api.client.get(f"/api/v1/plans?{query}", headers=api.headers)
    assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_another_agents_cursor_is_refused(api: Api, stranger: Api, seven: list[str]) -> None:
    cursor = api.get("/plans", {"limit": "2"}).json()["next"]
    answer = stranger.get("/plans", {"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-cursor")


def queries(act: Callable[[], Any]) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert act().status_code in (200, 304)
    return len(captured)


def test_the_number_of_queries_does_not_grow(api: Api, seven: list[str], ada: User) -> None:
    api.get("/plans")
    for plan in Plan.objects.all():
        plan = follow(plan, Verb.VERIFY)
        Decision.objects.create(
            plan=plan, round=1, person=ada, verdict="approve", shown_digest="0" * 64
        )
        follow(plan, Verb.EXPIRE)
    api.post("/plans", submission("pl_next", replaces="pl_3"))
    one = queries(lambda: api.get("/plans", {"limit": "1"}))
    many = queries(lambda: api.get("/plans"))
    assert one == many == 3
    assert queries(lambda: api.get("/plans/billing/pl_3")) == 3

"""The events feed over REST: in order, none missed, none twice, nobody else's (A-14)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from audit.actors import CLOCK
from plans.lifecycle import Verb, transition
from plans.models import Agent, Intent, Operation, Plan
from tests.plans.api_calls import Api, submission

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("refund")]


@pytest.fixture
def api(api_key: str) -> Api:
    return Api(api_key)


@pytest.fixture
def stranger(dana: User, make_api_key: Callable[..., str]) -> Api:
    return Api(make_api_key(Agent.objects.create(name="other-agent", owner=dana, rate_tokens=600)))


def submitted(api: Api, plan_id: str) -> Plan:
    assert api.post("/plans", submission(plan_id)).status_code == 201
    return Plan.objects.get(plan_id=plan_id)


def follow(plan: Plan, *verbs: Verb) -> None:
    for verb in verbs:
        with transaction.atomic():
            transition(Plan.objects.locked_with_intent(plan.pk), verb, actor=CLOCK)


def page(api: Api, after: str | None = None, limit: int | None = None) -> Any:
    query = {"after": after, "limit": limit}
    answer = api.get("/events", {k: str(v) for k, v in query.items() if v is not None})
    assert answer.status_code == 200, answer.content
    return answer.json()


def walked(api: Api, limit: int) -> list[dict[str, Any]]:
    """The whole feed, page by page."""
    items: list[dict[str, Any]] = []
    here = page(api, limit=limit)
    while here["items"]:
        assert len(here["items"]) <= limit
        items += here["items"]
        here = page(api, here["next"], limit)
    return items


def test_every_transition_is_told_with_its_names(api: Api) -> None:
    plan = submitted(api, "pl_1")
    follow(plan, Verb.VERIFY, Verb.EXPIRE)
    items = walked(api, 200)
    assert [(item["type"], item["from"], item["to"]) for item in items] == [
        ("plan.submitted", None, None),
        ("plan.verified", "verifying", "pending"),
        ("plan.expired", "pending", "expired"),
        ("replan.queued", None, None),
    ]
    for item in items:
        assert set(item) == {
            *("id", "at", "type", "target", "plan_id", "intent_id", "task_id", "from", "to")
        }
        assert (item["target"], item["plan_id"], item["task_id"]) == ("billing", "pl_1", "task-1")
        assert item["intent_id"] == str(plan.intent_id)


@pytest.mark.parametrize("limit", [1, 2, 3, 200])
def test_pages_of_any_size_tell_the_same(api: Api, stranger: Api, limit: int) -> None:
    for number in range(4):
        follow(submitted(api, f"pl_{number}"), Verb.VERIFY)
        submitted(stranger, f"other_{number}")
    items = walked(api, limit)
    assert [item["id"] for item in items] == [item["id"] for item in walked(api, 200)]
    assert len({item["id"] for item in items}) == len(items) == 8
    assert {item["plan_id"] for item in items} == {f"pl_{number}" for number in range(4)}


def test_one_cursor_tells_the_same_again_and_then_what_is_new(api: Api) -> None:
    plan = submitted(api, "pl_1")
    first = page(api)
    end = page(api, first["next"])
    assert end == {"items": [], "next": first["next"]}
    follow(plan, Verb.VERIFY)
    again = [page(api, first["next"]) for _ in range(2)]
    assert again[0] == again[1]
    assert [item["to"] for item in again[0]["items"]] == ["pending"]


def test_the_cursor_of_a_feed_without_events_is_good_for_later(api: Api) -> None:
    start = page(api)
    assert start["items"] == []
    submitted(api, "pl_1")
    assert len(page(api, start["next"])["items"]) == 1


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"after": ""}, "invalid-cursor"),
        ({"after": "e1-1"}, "invalid-cursor"),
        ({"after": "e1-1-1-1"}, "invalid-cursor"),
        ({"after": "e1--1-1"}, "invalid-cursor"),
        ({"after": "e1-\u0661-1"}, "invalid-cursor"),
        ({"after": f"e1-{'9' * 19}-1"}, "invalid-cursor"),
        ({"limit": "0"}, "invalid-limit"),
        ({"limit": "201"}, "invalid-limit"),
        ({"cursor": "e1-1-1"}, "invalid-parameter"),
    ],
)
def test_a_query_that_is_not_ours_is_refused(api: Api, query: dict[str, str], code: str) -> None:
    answer = api.get("/events", query)
    assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_the_largest_cursor_is_only_late(api: Api) -> None:
    submitted(api, "pl_1")
    assert page(api, f"e{'9' * 9}-{'9' * 18}-{'9' * 18}")["items"] == []


# ── order ────────────────────────────────────────────────────────────────────────────────────


def test_what_waited_for_a_lock_is_told_after_what_it_waited_for(api: Api) -> None:
    """Both have their transaction's ID before the one waits for the other."""
    plan = submitted(api, "pl_1")
    follow(plan, Verb.VERIFY)
    has_an_id, waits = threading.Event(), threading.Event()

    def mark_stale() -> None:
        try:
            with transaction.atomic():
                Intent.objects.locked(plan.intent_id)
                has_an_id.set()
                waits.wait(10)
                row = Plan.objects.locked(plan.pk)
                transition(row, Verb.MARK_STALE, actor=CLOCK)
        finally:
            connection.close()

    earlier = threading.Thread(target=mark_stale)
    earlier.start()
    assert has_an_id.wait(10)
    with transaction.atomic():
        row = Plan.objects.locked(plan.pk)
        transition(row, Verb.APPROVE, actor=CLOCK)
        waits.set()
    earlier.join(10)
    moves = [(item["from"], item["to"]) for item in walked(api, 1) if item["to"]]
    assert moves == [("verifying", "pending"), ("pending", "approved"), ("approved", "stale")]


def test_what_commits_late_is_told_late_and_not_lost(api: Api, refund: Operation) -> None:
    """A reader passes while a transaction with a lower ID, and lower events, is still open."""
    slow, quick = submitted(api, "pl_slow"), submitted(api, "pl_quick")
    start = page(api)["next"]
    wrote, commits = threading.Event(), threading.Event()

    def verify_slowly() -> None:
        try:
            with transaction.atomic():
                transition(Plan.objects.locked(slow.pk), Verb.VERIFY, actor=CLOCK)
                wrote.set()
                commits.wait(10)
        finally:
            connection.close()

    thread = threading.Thread(target=verify_slowly)
    thread.start()
    assert wrote.wait(10)
    follow(quick, Verb.VERIFY)
    meanwhile = page(api, start)
    assert meanwhile == {"items": [], "next": start}
    commits.set()
    thread.join(10)
    told = page(api, meanwhile["next"])["items"]
    assert [item["plan_id"] for item in told] == ["pl_slow", "pl_quick"]
    assert told[0]["id"] < told[1]["id"]

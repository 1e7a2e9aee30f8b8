"""Who is asked about what, in which order, and at what price."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals import desk, lists, queue
from approvals.filters import Cursor, Filters, Part, Tab
from approvals.narrowing import Narrowing
from audit.figures import Counts
from plans.models import Intent, Operation, Plan, Replan, Target
from plans.status import Status
from tests.approvals.waiting_plans import copies, decided, rated

type MakePlan = Callable[..., Plan]
PI_DAY = datetime(2026, 3, 14, tzinfo=UTC)


def tabs(user: User, **filters: Any) -> dict[Tab, int]:
    return desk.desk(user, Narrowing.by(Filters(**filters))).tabs


def titles(user: User, **filters: Any) -> list[str]:
    return [found.plan.title for found in lists.page(user, Filters(**filters)).plans]


@pytest.mark.parametrize("status", Status.values)
def test_only_pending_plans_need_me(ada: User, make_plan: MakePlan, status: str) -> None:
    make_plan(status=status)
    assert queue.needs_me(ada).count() == (status == Status.PENDING)


def test_a_plan_whose_time_is_over_needs_nobody(ada: User, make_plan: MakePlan) -> None:
    rated(make_plan(), "high", -1)
    assert not queue.needs_me(ada).exists()
    assert queue.others(ada).count() == 1


def test_the_agents_owner_is_not_asked(dana: User, make_plan: MakePlan) -> None:
    make_plan()
    assert not queue.needs_me(dana).exists()
    assert queue.others(dana).count() == 1


def test_who_has_decided_is_not_asked_again_in_this_round(
    ada: User, grace: User, make_plan: MakePlan
) -> None:
    decided(make_plan(approvals_required=2), ada)
    assert not queue.needs_me(ada).exists()
    assert queue.others(ada).count() == 1
    assert queue.needs_me(grace).count() == 1


def test_a_new_round_asks_again(ada: User, make_plan: MakePlan) -> None:
    decided(make_plan(round=2), ada, round=1)
    assert queue.needs_me(ada).count() == 1


def test_another_groups_target_is_invisible(
    ada: User, make_plan: MakePlan, billing: Target
) -> None:
    make_plan()
    billing.reviewers.set([Group.objects.create(name="treasurers")])
    assert not queue.needs_me(ada).exists()
    assert not queue.others(ada).exists()
    assert not queue.seen_targets(ada).exists()
    assert not queue.seen_agents([]).exists()


def test_a_manager_sees_everything_and_is_asked_nothing(mona: User, make_plan: MakePlan) -> None:
    make_plan()
    assert not queue.needs_me(mona).exists()
    assert queue.others(mona).count() == 1


def test_every_plan_stands_in_exactly_one_place(ada: User, make_plan: MakePlan) -> None:
    for status in Status.values:
        make_plan(status=status)
    places = [queue.needs_me(ada), queue.others(ada), queue.done(ada), queue.unresolved(ada)]
    found = [plan.pk for place in places for plan in place]
    assert sorted(found) == sorted(Plan.objects.values_list("pk", flat=True))


def test_risk_comes_first_then_time_but_under_a_minute_before_all(
    ada: User, make_plan: MakePlan
) -> None:
    for risk, seconds in [
        ("low", 300),
        ("critical", 500),
        ("low", 30),
        ("high", 400),
        ("critical", 200),
        ("high", 50),
    ]:
        rated(make_plan(), risk, seconds)
    assert titles(ada) == [
        "high in 50",
        "low in 30",
        "critical in 200",
        "critical in 500",
        "high in 400",
        "low in 300",
    ]


def test_pages_show_every_row_once_and_in_order(ada: User, make_plan: MakePlan) -> None:
    for seconds in (20, 40, 300, 301, 302, 303, 304):
        rated(make_plan(), "high" if seconds % 2 else "low", seconds)
    for _ in range(2):
        park(make_plan(status=Status.EXPIRED))
    Plan.objects.update(likeness="")
    whole = [found.plan.pk for found in lists.page(ada, Filters()).plans]
    walked: list[int] = []
    filters = Filters()
    for _ in range(9):
        page = lists.page(ada, filters, size=2)
        walked += [found.plan.pk for found in page.plans]
        if not page.next:
            break
        filters = Filters(after=Cursor.decode(page.next))
    assert walked == whole
    assert len(walked) == 9


@pytest.mark.parametrize("tab", [Tab.OTHERS, Tab.DONE])
def test_other_lists_page_without_gaps(dana: User, make_plan: MakePlan, tab: Tab) -> None:
    status = Status.REJECTED if tab is Tab.DONE else Status.PENDING
    plans = {make_plan(status=status).pk for _ in range(5)}
    first = lists.page(dana, Filters(tab=tab), size=3)
    rest = lists.page(dana, Filters(tab=tab, after=Cursor.decode(first.next)), size=3)
    assert {found.plan.pk for found in first.plans + rest.plans} == plans
    assert rest.next == ""


def park(plan: Plan) -> Plan:
    Intent.objects.filter(pk=plan.intent_id).update(
        status=Intent.Status.PARKED, latest_revision=plan.revision
    )
    return plan


def test_a_parked_intent_waits_in_needs_me_and_in_the_badge(
    ada: User, dana: User, make_plan: MakePlan
) -> None:
    plan = park(make_plan(status=Status.EXPIRED))
    page = lists.page(ada, Filters())
    assert [(found.plan, found.part) for found in page.plans] == [(plan, Part.PARKED)]
    assert tabs(ada)[Tab.NEEDS_ME] == 1
    assert desk.head(ada).review == 1
    assert not lists.page(dana, Filters()).plans


def test_a_parked_intent_shows_its_last_plan_only(ada: User, make_plan: MakePlan) -> None:
    old = make_plan(status=Status.EXPIRED)
    new = make_plan(status=Status.EXPIRED, intent=old.intent, revision=2, replaces=old)
    park(new)
    assert [found.plan for found in lists.page(ada, Filters()).plans] == [new]


@pytest.mark.parametrize(
    "word",
    ["PLAN_", "invoice/4412", "support", "task-1", "Refund", "lost in transit", "by carrier"],
)
def test_search_looks_at_ids_names_objects_and_texts(
    ada: User, make_plan: MakePlan, word: str
) -> None:
    make_plan(summary="Lost in transit", reason="confirmed by carrier")
    assert len(titles(ada, q=word)) == 1
    assert titles(ada, q=f"{word} nowhere") == []


@pytest.mark.parametrize("pattern", ["%", "_____", "\\", "'; DROP TABLE plans_plan; --"])
def test_search_words_are_no_patterns(ada: User, make_plan: MakePlan, pattern: str) -> None:
    make_plan()
    assert titles(ada, q=pattern) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("target", "billing", "crm"),
        ("operation", "refund", "charge"),
        ("risk", "high", "low"),
        ("agent", "support-agent", "other"),
    ],
)
def test_filters_narrow(ada: User, make_plan: MakePlan, name: str, right: str, wrong: str) -> None:
    make_plan()
    assert len(titles(ada, **{name: right})) == 1
    assert titles(ada, **{name: wrong}) == []
    assert tabs(ada, **{name: wrong})[Tab.NEEDS_ME] == 0


@pytest.mark.parametrize(
    "query",
    [
        "tab=nowhere",
        "risk=enormous",
        "after=%00",
        "after=AAAA",
        "after=bnVsbA",
        "q=%00",
        "after=W10",
    ],
)
def test_a_query_string_that_nobody_wrote_is_the_plain_list(query: str) -> None:
    assert Filters.from_query(QueryDict(query)) == Filters()


@pytest.mark.parametrize("pk", [-1, 2**63, 10**30])
def test_a_cursor_beyond_the_database_is_none(pk: int) -> None:
    assert Cursor.decode(Cursor(Part.REST, PI_DAY, 1, PI_DAY, pk).encode()) is None


def test_the_cursor_comes_back_as_it_went() -> None:
    cursor = Cursor(Part.URGENT, PI_DAY, 1, PI_DAY, 42)
    assert Cursor.decode(cursor.encode()) == cursor


def test_replans_are_listed_and_counted(ada: User, make_plan: MakePlan) -> None:
    plan = make_plan(status=Status.CONFLICTED)
    replan = Replan.objects.create(intent=plan.intent, plan=plan, cause="conflicted", mode="server")
    assert lists.page(ada, Filters(tab=Tab.REPLANNING)).replans == [replan]
    assert tabs(ada, q=plan.plan_id)[Tab.REPLANNING] == 1
    assert tabs(ada, q="nothing like it")[Tab.REPLANNING] == 0


def test_ten_and_a_thousand_plans_cost_the_same_queries(
    client: Client, ada: User, make_plan: MakePlan, refund: Operation
) -> None:
    client.force_login(ada)
    urls = [f"/review/?tab={tab.value}&q=invoice" for tab in Tab]
    copies(make_plan(), 9)
    queries_of(client, urls[0])
    few = [queries_of(client, url) for url in urls]
    copies(make_plan(), 990)
    many = [queries_of(client, url) for url in urls]
    for before, after in zip(few, many, strict=True):
        # A full page does not look for what would stand below it.
        assert len(before) - 1 <= len(after) <= len(before)
        assert not [query for query in after if "OFFSET" in query]


def queries_of(client: Client, url: str) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200
    return [query["sql"] for query in captured.captured_queries]


def test_counts_stop_at_the_cap(
    ada: User, make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "CAP", 3)
    monkeypatch.setattr(desk, "_HEAD", Counts(desk._asked_of_every_page))
    copies(make_plan(), 5)
    assert desk.head(ada).review == 3

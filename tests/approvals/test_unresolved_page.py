"""The page of unresolved plans: its pages, its words for readings, and its refusals."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import chain
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals import unresolved
from approvals.unresolved import Look
from audit import actors
from plans import resolving
from plans.clock import clock
from plans.models import Attempt, Plan, Target
from plans.outcomes import ReadKind
from plans.status import Status
from tests.approvals.paper_plans import MakePlan


@pytest.fixture
def desk(client: Client, ada: User) -> Client:
    """Ada's browser."""
    client.force_login(ada)
    return client


def lose(make_plan: MakePlan, **columns: Any) -> Plan:
    """A plan whose only attempt told nothing."""
    plan = make_plan(status=Status.UNRESOLVED, unknown_since=clock(), **columns)
    Attempt.objects.create(plan=plan, number=1, lease_until=clock(), outcome="unknown")
    return plan


def lose_many(make_plan: MakePlan, number: int) -> list[Plan]:
    """Some at the very same moment: the key decides between them."""
    start = clock()
    return [
        lose(make_plan, status_at=start + timedelta(seconds=each // 3)) for each in range(number)
    ]


def shown_on(page: str) -> list[int]:
    return [int(pk) for pk in re.findall(r'<article[^>]* id="unresolved-([0-9]+)"', page)]


def address(plan: Plan, noun: str = "finding", query: str = "") -> str:
    return f"/plans/billing/{plan.plan_id}/{noun}/{query}"


def next_of(page: str) -> str:
    found = re.search(r'href="/unresolved/(\?[^"]*)" rel="next"', page)
    return found[1].replace("&amp;", "&") if found else ""


def test_the_pages_hold_every_plan_once_and_in_order(desk: Client, make_plan: MakePlan) -> None:
    plans, query, seen = lose_many(make_plan, 45), "", []
    for _ in range(3):
        page = desk.get(f"/unresolved/{query}").text
        seen.append(shown_on(page))
        query = next_of(page)
    assert [len(page) for page in seen] == [20, 20, 5]
    assert list(chain(*seen)) == [plan.pk for plan in plans]
    assert query == ""


def test_a_plan_that_leaves_moves_no_other_one(desk: Client, make_plan: MakePlan) -> None:
    plans = lose_many(make_plan, 23)
    following = next_of(desk.get("/unresolved/").text)
    Plan.objects.filter(pk__in=[plan.pk for plan in plans[15:20]]).update(status=Status.UNKNOWN)
    assert shown_on(desk.get(f"/unresolved/{following}").text) == [p.pk for p in plans[20:]]


def test_sixty_plans_cost_as_many_queries_as_one(desk: Client, make_plan: MakePlan) -> None:
    counts = []
    for more in (1, 59):
        lose_many(make_plan, more)
        desk.get("/unresolved/")
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert desk.get("/unresolved/").status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 20


@pytest.mark.parametrize(
    "query",
    [
        "after=",
        "after=yesterday~1",
        "after=2026-03-14T09:00:00~1",
        "after=2026-03-14T09:00:00%2B00:00~x",
        "after=2026-03-14T09:00:00%2B00:00~-1",
        "after=2026-03-14T09:00:00%2B00:00~" + "9" * 30,
        "after=%00~%00",
        "after=0001-01-01T00:00:00%2B14:00~1",
        "plan=%00",
    ],
)
def test_a_made_up_cursor_starts_at_the_top(desk: Client, make_plan: MakePlan, query: str) -> None:
    plan = lose(make_plan)
    assert shown_on(desk.get(f"/unresolved/?{query}").text) == [plan.pk]


def test_a_cursor_at_the_end_of_time_is_the_end(desk: Client, make_plan: MakePlan) -> None:
    lose(make_plan)
    page = desk.get("/unresolved/?after=9999-12-31T23:59:59-12:00~1").text
    assert "No more unresolved plans" in page


def test_a_cursor_survives_its_way_through_an_address(make_plan: MakePlan) -> None:
    look = Look.behind(lose(make_plan))
    assert Look.from_query({"after": look.after}) == look


def test_one_plan_can_be_shown_alone(desk: Client, make_plan: MakePlan) -> None:
    first, second = lose_many(make_plan, 2)
    page = desk.get(f"/unresolved/?plan={second.plan_id}").text
    assert shown_on(page) == [second.pk]
    assert "All unresolved plans" in page
    assert f"/unresolved/?plan={first.plan_id}" in desk.get(f"/plans/billing/{first.plan_id}/").text


@pytest.mark.parametrize(
    ("person", "query", "words"),
    [
        ("ada", "", "Every outcome is known"),
        ("mona", "", "Every outcome is known"),
        ("ada", "?plan=plan_gone", "This plan is not unresolved"),
        ("ada", "?after=2026-03-14T09:00:00%2B00:00~1", "No more unresolved plans"),
        ("charlie", "", "No targets are yours to review"),
    ],
)
def test_an_empty_page_says_why_it_is_empty(
    client: Client,
    request: pytest.FixtureRequest,
    billing: Target,
    person: str,
    query: str,
    words: str,
) -> None:
    client.force_login(request.getfixturevalue(person))
    assert words in client.get(f"/unresolved/{query}").text


@pytest.mark.parametrize(
    ("person", "words"),
    [
        ("dana", "You own support-agent: somebody else has to look."),
        ("mona", "A reviewer of billing has to look."),
    ],
)
def test_who_cannot_say_is_told_who_can(
    client: Client, request: pytest.FixtureRequest, make_plan: MakePlan, person: str, words: str
) -> None:
    lose(make_plan)
    client.force_login(request.getfixturevalue(person))
    page = client.get("/unresolved/").text
    assert words in page
    assert "<textarea" not in page
    assert "Read state now" not in page


def test_people_without_the_target_see_nothing_of_it(
    client: Client, charlie: User, make_plan: MakePlan
) -> None:
    plan = lose(make_plan)
    client.force_login(charlie)
    for query in ("", f"?plan={plan.plan_id}"):
        assert plan.title not in client.get(f"/unresolved/{query}").text


def test_the_page_says_what_to_look_for_and_what_the_agent_is_told(
    desk: Client, make_plan: MakePlan
) -> None:
    lose(make_plan)
    page = desk.get("/unresolved/").text
    for words in ("Look for this at billing", "480.00 USD", "0.00 USD", "refunded", "paid"):
        assert words in page
    assert "<code>investigate</code>" in page


@pytest.mark.parametrize("kind", [*ReadKind, "a word of tomorrow"])
def test_every_reading_has_its_words(desk: Client, make_plan: MakePlan, kind: str) -> None:
    reading = {"kind": kind, "reason": "x", "http_status": 200, "at": "2026-03-14T09:36:41.250Z"}
    lose(make_plan, last_reading=reading)
    words = unresolved.READINGS.get(kind, unresolved.READINGS["unreadable"])[1]
    page = desk.get("/unresolved/").text
    assert f"billing {words}." in page
    assert "14 Mar 09:36:41 UTC" in page


def test_hostile_answers_stay_text(desk: Client, make_plan: MakePlan) -> None:
    plan = lose(make_plan)
    Attempt.objects.create(
        plan=plan,
        number=2,
        lease_until=clock(),
        outcome="unknown",
        reason="</code><b>",
        http_status=502,
        answer="</pre><img src=x onerror=alert(1)>\u202e\x1b[31m" + "x" * 9000,
        answer_headers={"location": "javascript:alert(1)\u2066"},
    )
    page = desk.get("/unresolved/").text
    assert "&lt;img src=x onerror=alert(1)&gt;⟨U+202E⟩" in page
    assert "location: javascript:alert(1)⟨U+2066⟩" in page
    assert "<img src=x" not in page
    assert "Only its beginning was kept." in page


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"finding": "applied", "note": "  "}, "Say why: this verdict needs a note."),
        ({"finding": "applied", "note": "long " * 900}, "The note is too long"),
        ({"finding": "perhaps", "note": "I <looked>."}, "Say whether it was applied or not."),
    ],
)
def test_a_refused_note_comes_back_with_its_fault_beside_it(
    desk: Client, make_plan: MakePlan, form: dict[str, str], words: str
) -> None:
    plans = lose_many(make_plan, 25)
    query = next_of(desk.get("/unresolved/").text)
    answer = desk.post(address(plans[22], query=query), form)
    assert answer.status_code == 422
    assert shown_on(answer.text) == [plan.pk for plan in plans[20:]]
    assert words in answer.text
    assert answer.text.count('aria-invalid="true"') == 1
    typed = form["note"].replace("<", "&lt;").replace(">", "&gt;")
    assert f"autofocus>\n{typed}</textarea>" in answer.text


def test_who_comes_second_reads_who_was_first_and_loses_no_word(
    desk: Client, grace: User, make_plan: MakePlan
) -> None:
    plan = lose(make_plan)
    resolving.checked(plan.pk, applied=True, note="It is <there>.", actor=actors.person(grace))
    answer = desk.post(address(plan), {"finding": "not_applied", "note": "I saw nothing."})
    assert answer.status_code == 409
    assert "is committed, settled by <b><bdi>grace</bdi></b>" in answer.text
    assert "It is &lt;there&gt;." in answer.text
    assert "What you wrote was not stored: <q><bdi>I saw nothing.</bdi></q>" in answer.text
    plan.refresh_from_db()
    assert plan.status == Status.COMMITTED


def test_a_reading_that_comes_too_late_says_so(desk: Client, make_plan: MakePlan) -> None:
    answer = desk.post(address(make_plan(), "reading"))
    assert answer.status_code == 409
    assert "Its outcome is known already" in answer.text


def test_a_program_gets_problems_and_no_page(desk: Client, make_plan: MakePlan) -> None:
    answer = desk.post(
        address(lose(make_plan)),
        {"finding": "applied"},
        headers={"Accept": "application/problem+json"},
    )
    assert answer.status_code == 422
    assert answer.json()["code"] == "note-required"


@pytest.mark.django_db(transaction=True)
def test_a_target_that_does_not_answer_is_said_to_be_silent(
    desk: Client, make_plan: MakePlan, billing: Target
) -> None:
    Target.objects.filter(pk=billing.pk).update(base_url="http://127.0.0.1:9")
    plan = lose(make_plan)
    answer = desk.post(address(plan, "reading"), follow=True)
    assert answer.redirect_chain == [(f"/unresolved/#unresolved-{plan.pk}", 303)]
    assert "billing gave no answer that can be read." in answer.text
    assert "<code>unreadable</code>, connect" in answer.text
    plan.refresh_from_db()
    assert plan.status == Status.UNRESOLVED


def test_a_finding_leads_back_to_its_page_of_the_list(desk: Client, make_plan: MakePlan) -> None:
    plans = lose_many(make_plan, 25)
    query = next_of(desk.get("/unresolved/").text)
    answer = desk.post(address(plans[22], query=query), {"finding": "applied", "note": "Seen."})
    assert answer.headers["Location"] == f"/unresolved/{query}"


def test_the_page_of_the_plan_does_not_promise_what_may_have_happened(
    desk: Client, make_plan: MakePlan
) -> None:
    page = desk.get(f"/plans/billing/{lose(make_plan).plan_id}/").text
    assert "What it may have changed" in page
    assert "What will change" not in page

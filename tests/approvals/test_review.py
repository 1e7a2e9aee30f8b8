"""The landing page, as a browser gets it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from plans.clock import clock
from plans.models import Intent, Plan
from plans.status import Status

type MakePlan = Callable[..., Plan]

HTMX = {"HX-Request": "true"}
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)> hx-get="/x" {{7*7}}'


@pytest.fixture
def at_the_desk(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def test_the_first_plan_is_open_beside_the_list(at_the_desk: Client, make_plan: MakePlan) -> None:
    plan = make_plan()
    page = at_the_desk.get("/review/")
    assert page.status_code == 200
    assert page.context["plan"] == plan
    assert f'data-opened="plan-{plan.pk}"' in page.text
    assert f'href="/plans/billing/{plan.plan_id}/"' in page.text


def test_the_title_and_the_badge_count_what_i_can_decide(
    at_the_desk: Client, make_plan: MakePlan
) -> None:
    for status in (Status.PENDING, Status.PENDING, Status.VERIFYING):
        make_plan(status=status)
    page = at_the_desk.get("/review/").text
    assert "<title>(2) Review" in page
    assert 'id="review-count" class="count " data-count="2"' in page


def test_htmx_gets_the_list_alone_with_fresh_counts(
    at_the_desk: Client, make_plan: MakePlan
) -> None:
    make_plan()
    answer = at_the_desk.get("/review/", headers=HTMX)
    assert "<html" not in answer.text
    assert answer.text.count('hx-swap-oob="true"') == 3
    assert 'id="queue"' in answer.text


def test_going_back_in_history_gets_a_whole_page(at_the_desk: Client) -> None:
    answer = at_the_desk.get("/review/", headers=HTMX | {"HX-History-Restore-Request": "true"})
    assert "<html" in answer.text


def test_the_query_string_is_the_state(at_the_desk: Client, make_plan: MakePlan) -> None:
    make_plan()
    page = at_the_desk.get("/review/?tab=needs_me&q=invoice&risk=high&target=billing").text
    assert 'name="q" value="invoice"' in page
    assert "<option selected>high</option>" in page
    assert "<option selected>billing</option>" in page
    assert 'hx-get="/review/?tab=needs_me&amp;q=invoice&amp;risk=high&amp;target=billing"' in page
    # Another tab keeps the filters.
    assert "?tab=done&amp;q=invoice&amp;risk=high&amp;target=billing" in page


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "Nothing needs you"),
        ("tab=others", "Nothing waits for others"),
        ("tab=replanning", "Nothing is being planned again"),
        ("tab=done", "Nothing is done yet"),
        ("q=nowhere", "Nothing matches"),
    ],
)
def test_an_empty_list_says_which(
    at_the_desk: Client, make_plan: MakePlan, query: str, words: str
) -> None:
    make_plan(status=Status.UNRESOLVED)
    assert words in at_the_desk.get(f"/review/?{query}").text


def test_a_stranger_is_told_why_the_list_is_empty(
    client: Client, charlie: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    client.force_login(charlie)
    page = client.get("/review/").text
    assert "No targets are yours to review" in page
    assert plan.plan_id not in page
    assert "billing" not in page


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"revision": 2}, ["rev 2"]),
        ({"verification": "unavailable"}, ["not verified"]),
        ({}, ["irreversible", "high"]),
    ],
)
def test_a_row_says_what_is_special(
    at_the_desk: Client, make_plan: MakePlan, columns: dict[str, object], words: list[str]
) -> None:
    make_plan(**columns)
    row = at_the_desk.get("/review/", headers=HTMX).text
    assert [word for word in words if word not in row] == []


REFUND = {"op": "update", "target": "invoice/4412", "field": "refunded_cents", "from": 0}


@pytest.mark.parametrize(
    ("was", "now", "changed"),
    [
        ([REFUND | {"to": 48000}], [REFUND | {"to": 48000}], False),
        ([REFUND | {"to": 48000}], [REFUND | {"to": 28000}], True),
        ([REFUND | {"to": 48000}], [REFUND | {"from": 200, "to": 48000}], True),
        ([REFUND | {"to": 1}], [REFUND | {"to": True}], True),
    ],
)
def test_a_revision_is_changed_only_where_it_does_something_else(
    at_the_desk: Client, make_plan: MakePlan, was: list[Any], now: list[Any], changed: bool
) -> None:
    old = make_plan(status=Status.EXPIRED, actions=was)
    make_plan(intent=old.intent, revision=2, replaces=old, actions=now)
    row = at_the_desk.get("/review/", headers=HTMX).text
    assert "rev 2" in row
    assert (">changed<" in row) is changed


def test_a_quorum_counts_in_the_row(at_the_desk: Client, make_plan: MakePlan) -> None:
    plan = make_plan()
    Plan.objects.filter(pk=plan.pk).update(approvals_required=2, approvals_given=1)
    assert "1 of 2 approved" in at_the_desk.get("/review/", headers=HTMX).text


def test_under_a_minute_the_time_is_red(at_the_desk: Client, make_plan: MakePlan) -> None:
    make_plan()
    assert 'class="t soon"' not in at_the_desk.get("/review/", headers=HTMX).text
    Plan.objects.update(decide_by=clock() + timedelta(seconds=40))
    row = at_the_desk.get("/review/", headers=HTMX).text
    assert 'class="t soon"' in row
    assert "0:39" in row


def test_a_parked_row_can_be_planned_again_from_the_list(
    at_the_desk: Client, make_plan: MakePlan
) -> None:
    plan = make_plan(status=Status.EXPIRED)
    Intent.objects.update(status=Intent.Status.PARKED, latest_revision=1)
    row = at_the_desk.get("/review/", headers=HTMX).text
    assert "plan on open" in row
    assert f'action="/intents/{plan.intent_id}/replans/"' in row
    assert "data-decide-in-ms" not in row


def test_hostile_text_stays_text(at_the_desk: Client, make_plan: MakePlan) -> None:
    plan = make_plan(task_id=HOSTILE[:100], summary=HOSTILE, reason=HOSTILE)
    Plan.objects.filter(pk=plan.pk).update(title=HOSTILE)
    for page in ("/review/", "/review/?q=%3Cscript%3E"):
        text = at_the_desk.get(page).text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "49" not in text.split('id="queue"')[1].split("<bdi>")[1].split("</bdi>")[0]


def test_no_page_holds_a_token(at_the_desk: Client, make_plan: MakePlan) -> None:
    make_plan()
    for tab in ("needs_me", "others", "replanning", "done"):
        assert "token-of-the-tests" not in at_the_desk.get(f"/review/?tab={tab}").text


def test_a_signed_out_fragment_sends_the_whole_page_to_sign_in(client: Client, db: None) -> None:
    answer = client.get("/review/", headers=HTMX)
    assert answer.headers["HX-Redirect"].startswith("/accounts/login/")
    assert answer.text == ""


def test_pages_have_a_strict_policy_and_nothing_inline(
    at_the_desk: Client, make_plan: MakePlan
) -> None:
    make_plan()
    page = at_the_desk.get("/review/")
    policy = page.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "style=" not in page.text
    nonce = policy.split("'nonce-")[1].split("'")[0]
    assert page.text.count("<script") == page.text.count(f'nonce="{nonce}"')


def test_signing_up_is_closed(client: Client, db: None) -> None:
    assert "Accounts are made by operators" in client.get("/accounts/signup/").text
    answer = client.post(
        "/accounts/signup/",
        {
            "username": "eve",
            "password1": "correct horse battery",
            "password2": "correct horse battery",
        },
    )
    assert not User.objects.filter(username="eve").exists()
    assert answer.status_code == 200


def test_signing_out_is_a_post(at_the_desk: Client) -> None:
    page = at_the_desk.get("/accounts/logout/")
    assert page.status_code == 200
    assert "_auth_user_id" in at_the_desk.session
    at_the_desk.post("/accounts/logout/")
    assert "_auth_user_id" not in at_the_desk.session


def test_a_refusal_inside_a_page_is_no_second_page(at_the_desk: Client) -> None:
    answer = at_the_desk.post("/decisions/999/dismissal/", headers=HTMX)
    assert answer.status_code == 404
    assert "<html" not in answer.text
    assert "There is nothing here" in answer.text


@pytest.mark.parametrize("path", ["/nothing/", "/accounts/login/", "/plans/billing/none/"])
def test_pages_outside_the_queue_have_their_head_and_a_way_on(
    at_the_desk: Client, path: str
) -> None:
    page = at_the_desk.get(path, follow=True).text
    assert 'href="/review/"' in page
    assert "Sign out" in page

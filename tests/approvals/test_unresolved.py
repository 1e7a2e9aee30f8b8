"""Outcomes that a person has to find out (T-10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from audit.models import Event
from plans.clock import clock
from plans.models import Attempt, Plan, Target
from plans.status import Status

type MakePlan = Callable[..., Plan]


@pytest.fixture
def lost(make_plan: MakePlan) -> Plan:
    """A plan whose two attempts told nothing."""
    reading = {"kind": "unreadable", "reason": "http-503", "http_status": 503, "at": "now"}
    plan = make_plan(status=Status.UNRESOLVED, unknown_since=clock(), last_reading=reading)
    Attempt.objects.create(plan=plan, number=1, lease_until=clock(), outcome="unknown")
    Attempt.objects.create(
        plan=plan,
        number=2,
        lease_until=clock(),
        outcome="unknown",
        http_status=502,
        answer="<script>alert(1)</script>\u202e gateway",
    )
    return plan


def url_of(plan: Plan, noun: str = "finding") -> str:
    return f"/plans/billing/{plan.plan_id}/{noun}/"


def test_the_page_shows_attempts_and_raw_answers_as_text(
    client: Client, ada: User, lost: Plan
) -> None:
    client.force_login(ada)
    page = client.get("/unresolved/").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩ gateway" in page
    assert "No answer arrived." in page
    assert "HTTP 502" in page
    assert "unreadable" in page
    assert lost.idempotency_key in page


@pytest.mark.parametrize(
    ("finding", "status", "action"),
    [
        ("applied", Status.COMMITTED, "plan.checked_applied"),
        ("not_applied", Status.FAILED, "plan.checked_not_applied"),
    ],
)
def test_a_finding_settles_the_plan_with_its_note(
    client: Client, ada: User, lost: Plan, finding: str, status: Status, action: str
) -> None:
    client.force_login(ada)
    answer = client.post(url_of(lost), {"finding": finding, "note": "I looked at invoice 4412."})
    assert answer.status_code == 303
    assert Plan.objects.get().status == status
    event = Event.objects.get(action=action)
    assert event.actor_label == "ada"
    assert event.details["note"] == "I looked at invoice 4412."


@pytest.mark.parametrize(
    "form",
    [
        {"finding": "applied"},
        {"finding": "applied", "note": " \n"},
        {"finding": "perhaps", "note": "x"},
        {"note": "x"},
        {"finding": "applied", "note": "x" * 5000},
        {"finding": "applied", "note": "a\0b"},
    ],
)
def test_a_finding_without_its_words_is_refused(
    client: Client, ada: User, lost: Plan, form: dict[str, Any]
) -> None:
    client.force_login(ada)
    assert client.post(url_of(lost), form).status_code == 422
    assert Plan.objects.get().status == Status.UNRESOLVED
    assert not Event.objects.exists()


def test_a_plan_is_settled_once(client: Client, ada: User, lost: Plan) -> None:
    client.force_login(ada)
    client.post(url_of(lost), {"finding": "applied", "note": "seen"})
    again = client.post(url_of(lost), {"finding": "not_applied", "note": "no"})
    assert again.status_code == 409
    assert Plan.objects.get().status == Status.COMMITTED


@pytest.mark.parametrize("noun", ["finding", "reading"])
@pytest.mark.parametrize(
    ("person", "status"), [("dana", 403), ("mona", 403), ("charlie", 404), ("otto", 404)]
)
def test_only_who_may_decide_may_say(
    client: Client,
    request: pytest.FixtureRequest,
    lost: Plan,
    noun: str,
    person: str,
    status: int,
) -> None:
    client.force_login(request.getfixturevalue(person))
    answer = client.post(url_of(lost, noun), {"finding": "applied", "note": "x"})
    assert answer.status_code == status
    assert Plan.objects.get().status == Status.UNRESOLVED


@pytest.mark.parametrize("noun", ["finding", "reading"])
def test_links_change_nothing(client: Client, ada: User, lost: Plan, noun: str) -> None:
    client.force_login(ada)
    assert client.get(url_of(lost, noun)).status_code == 405


def test_a_target_without_read_back_says_so(
    client: Client, ada: User, lost: Plan, billing: Target
) -> None:
    Target.objects.filter(pk=billing.pk).update(plan_path="")
    client.force_login(ada)
    page = client.post(url_of(lost, "reading"), follow=True).text
    assert "billing offers no way to read a plan back." in page
    assert Plan.objects.get().status == Status.UNRESOLVED


def test_only_unresolved_plans_are_read_by_people(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    client.force_login(ada)
    assert client.post(url_of(make_plan(), "reading")).status_code == 409


def test_a_manager_reads_and_has_no_buttons(client: Client, mona: User, lost: Plan) -> None:
    client.force_login(mona)
    page = client.get("/unresolved/").text
    assert lost.title in page
    assert "I checked" not in page

"""Mona asks who approved this, what they saw and what happened (4-screens, "Audit")."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from audit import actors
from audit.actions import Action
from audit.models import Event
from audit.pages import PAGE
from audit.recording import Subject, record
from plans.models import Plan

pytestmark = pytest.mark.django_db

type Happen = Callable[..., Event]
ADA = actors.Actor("person", "1", "ada")
STORY = uuid.UUID("6e0cf0a4-6f0e-4d6e-9a53-0d3f3a1f2b11")


@pytest.fixture
def happen(db: None) -> Happen:
    """`happen(action, actor, details, **subject)` records one event."""

    def run(
        action: Action = Action.DECISION_RECORDED,
        actor: actors.Actor = ADA,
        details: dict[str, Any] | None = None,
        **subject: Any,
    ) -> Event:
        about = {"target": "billing", "operation": "refund", "plan_id": "plan_b1d07"} | subject
        told = {"verdict": "approve"} if details is None else details
        with transaction.atomic():
            return record(action, actor, Subject(**about), told)

    return run


@pytest.fixture
def reader(client: Client, mona: User) -> Client:
    client.force_login(mona)
    return client


def sentences(response: Any) -> list[str]:
    """The sentences of the page, in its order, as text."""
    told = re.findall(r'<p class="told">(.*?)</p>', response.content.decode(), re.DOTALL)
    return [unescape(re.sub(r"<[^>]+>", "", html)) for html in told]


def test_a_stranger_signs_in_first(client: Client) -> None:
    for address in ("/audit/", "/audit/export?format=csv"):
        response = client.get(address)
        assert response.status_code == 302
        assert response["Location"].startswith("/accounts/login/?next=/audit/")


@pytest.mark.parametrize("name", ["ada", "grace", "dana", "charlie"])
def test_people_without_the_right_are_refused(
    client: Client, request: pytest.FixtureRequest, name: str, happen: Happen
) -> None:
    happen(title="A secret refund")
    client.force_login(request.getfixturevalue(name))
    for address in ("/audit/", "/audit/export?format=jsonl"):
        response = client.get(address)
        assert response.status_code == 403
        assert b"A secret refund" not in response.content


@pytest.mark.parametrize("name", ["mona", "otto", "admin_user"])
def test_managers_operators_and_superusers_read_it(
    client: Client, request: pytest.FixtureRequest, name: str, happen: Happen
) -> None:
    happen()
    client.force_login(request.getfixturevalue(name))
    assert sentences(client.get("/audit/")) == ["ada approved a refund at billing (plan_b1d07)"]


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nothing_can_be_written_here(reader: Client, method: str) -> None:
    assert getattr(reader, method)("/audit/").status_code == 405
    assert getattr(reader, method)("/audit/export").status_code == 405


def test_an_empty_trail_says_what_will_be_there(reader: Client) -> None:
    assert b"Nothing has happened yet" in reader.get("/audit/").content


@pytest.mark.usefixtures("billing")
def test_the_newest_comes_first_with_its_revision_and_links(reader: Client, happen: Happen) -> None:
    happen(Action.PLAN_SUBMITTED, details={"revision": 2, "expires_at": "later"})
    happen(title="Refund 280.00 USD on invoice/4412", intent_id=STORY)
    response = reader.get("/audit/")
    assert sentences(response)[0] == (
        "ada approved Refund 280.00 USD on invoice/4412 (plan_b1d07), revision 2"
    )
    page = response.content.decode()
    assert 'href="/plans/billing/plan_b1d07/"' in page
    assert f'href="/audit/?intent={STORY}"' in page


@pytest.mark.parametrize(
    ("person", "groups", "linked"),
    [
        ("mona", (), True),
        ("otto", (), False),
        ("otto", ("reviewers",), True),
        ("otto", ("others",), False),
    ],
)
def test_a_row_leads_only_to_a_plan_that_one_may_see(
    client: Client,
    request: pytest.FixtureRequest,
    make_plan: Callable[..., Plan],
    happen: Happen,
    person: str,
    groups: tuple[str, ...],
    linked: bool,
) -> None:
    """An operator reads the whole trail, and only the plans of targets that they review (SEC-4)."""
    plan = make_plan()
    happen(target=plan.target.name, plan_id=plan.plan_id)
    user = request.getfixturevalue(person)
    user.groups.add(*(Group.objects.get_or_create(name=name)[0] for name in groups))
    client.force_login(user)
    url = reverse("plan", args=[plan.target.name, plan.plan_id])
    page = client.get("/audit/").text
    assert (plan.plan_id in page, f'href="{url}"' in page) == (True, linked)
    assert client.get(url).status_code == (200 if linked else 404)


def test_an_intents_story_is_told_from_its_beginning(reader: Client, happen: Happen) -> None:
    happen(Action.PLAN_SUBMITTED, details={"revision": 1}, intent_id=STORY)
    happen(title="Another intent's plan", plan_id="plan_x", intent_id=uuid.uuid4())
    happen(Action.PLAN_EXPIRED, actors.CLOCK, {}, intent_id=STORY)
    told = sentences(reader.get("/audit/", {"intent": str(STORY)}))
    assert [line.split()[1] for line in told] == ["submitted", "clock"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, {"p1", "p2", "p3"}),
        ({"q": "LOST parcel"}, {"p2"}),
        ({"q": "p3"}, {"p3"}),
        ({"q": "100%"}, set()),
        ({"actor": "ada"}, {"p1", "p2"}),
        ({"actor": "Ada"}, {"p1", "p2"}),
        ({"actor": "ad"}, set()),
        ({"action": "decision.refused"}, {"p2"}),
        ({"action": "decision"}, {"p1", "p2"}),
        ({"target": "iam"}, {"p3"}),
        ({"plan": "p1"}, {"p1"}),
        ({"task": "t-2"}, {"p2"}),
        ({"from": "2020-01-01"}, {"p1", "p2", "p3"}),
        ({"to": "2020-01-01"}, set()),
        ({"from": "2020-01-01T00:00Z", "to": "2999-12-31T23:59:59+02:00"}, {"p1", "p2", "p3"}),
        ({"actor": "ada", "action": "decision.recorded", "target": "billing"}, {"p1"}),
        ({"unknown": "word", "page": "7"}, {"p1", "p2", "p3"}),
    ],
)
def test_filters_are_the_query_string(
    reader: Client, happen: Happen, query: dict[str, str], found: set[str]
) -> None:
    happen(plan_id="p1", task_id="t-1")
    refused = {"verdict": "approve", "code": "plan-expired", "note": "lost parcel"}
    happen(Action.DECISION_REFUSED, details=refused, plan_id="p2", task_id="t-2")
    happen(Action.PLAN_EXPIRED, actors.CLOCK, {}, plan_id="p3", target="iam")
    response = reader.get("/audit/", query)
    assert response.status_code == 200
    assert set(re.findall(r"\b(p\d)\b", " ".join(sentences(response)))) == found
    exported: Any = reader.get("/audit/export", {**query, "format": "jsonl"})
    text = b"".join(exported.streaming_content).decode()
    assert set(re.findall(r'"plan_id": "(p\d)"', text)) == found


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"from": "yesterday"}, "“from” is not a date like 2026-03-14"),
        ({"from": "2026-02-30"}, "“from” is no date of the calendar"),
        ({"to": "9999-12-31"}, "“to” is no date of the calendar"),
        ({"to": "٢٠٢٦-٠٣-١٤"}, "“to” is not a date"),
        ({"from": "2026-03-14", "to": "2026-03-13"}, "“to” is before “from”"),
        ({"intent": "4412"}, "“intent” is not an intent"),
        ({"action": "plan.*"}, "“action” is not the name of an action"),
        ({"q": "a\0b"}, "“q” holds a character that no event can hold"),
        ({"plan": "x" * 201}, "“plan” is longer than 200 characters"),
        ({"before": "-1"}, "“before” is not the place of a page"),
        ({"after": "99999999999999999999"}, "“after” is not the place of a page"),
    ],
)
def test_a_bad_filter_is_told_and_selects_nothing(
    reader: Client, happen: Happen, query: dict[str, str], message: str
) -> None:
    happen()
    for address in ("/audit/", "/audit/export"):
        response = reader.get(address, query)
        assert response.status_code == 422
        assert message in unescape(response.content.decode())
        assert sentences(response) == []


def test_pages_go_by_id_and_a_link_keeps_its_rows(reader: Client, happen: Happen) -> None:
    ids = [happen(plan_id=f"plan_{n}").pk for n in range(2 * PAGE + 5)][::-1]

    def shown(query: str) -> list[int]:
        page = reader.get(f"/audit/{query}").content.decode()
        links.update(re.findall(r'rel="(prev|next)" href="([^"]+)"', page))
        return [int(pk) for pk in re.findall(r'id="event-(\d+)"', page)]

    links: dict[str, str] = {}
    assert shown("?actor=ada") == ids[:PAGE]
    assert "prev" not in links
    second = unescape(links["next"])
    assert second == f"?actor=ada&before={ids[PAGE - 1]}"
    assert shown(second) == ids[PAGE : 2 * PAGE]
    newer = unescape(links["prev"])
    assert shown(unescape(links["next"])) == ids[2 * PAGE :]
    happen(plan_id="plan_new")
    assert shown(second) == ids[PAGE : 2 * PAGE]
    assert shown(newer) == ids[:PAGE]


def test_the_query_count_does_not_grow_with_the_trail(reader: Client, happen: Happen) -> None:
    def count(query: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert reader.get(f"/audit/{query}").status_code == 200
        return len(queries)

    for n in range(10):
        happen(plan_id=f"plan_{n}", intent_id=STORY)
    few = count(""), count(f"?intent={STORY}")
    Event.objects.bulk_create(
        Event(action=Action.PLAN_EXPIRED, target="billing", plan_id=f"p{n}", intent_id=STORY)
        for n in range(990)
    )
    assert (count(""), count(f"?intent={STORY}")) == few


def test_hostile_values_are_shown_and_run_nothing(reader: Client, happen: Happen) -> None:
    happen(
        details={"verdict": "reject", "note": "<script>alert(1)</script>\u202e{{7*7}}"},
        title="<img src=x onerror=alert(1)>\u3164",
        plan_id="../../x",
    )
    page = reader.get("/audit/", {"q": '"><script>'}).content.decode()
    assert "<script>alert" not in page
    assert '"><script>' not in page
    page = reader.get("/audit/").content.decode()
    assert "<img src=x" not in page
    assert "\u202e" not in page
    assert "⟨U+202E⟩" in page
    assert "⟨U+3164⟩" in page

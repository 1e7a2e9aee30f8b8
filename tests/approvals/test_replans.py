"""Re-planning, as people see it and hurry it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit.models import Event
from audit.sentences import sentence
from plans.clock import clock
from plans.models import Intent, Plan, Replan, Target
from plans.status import Status

type MakePlan = Callable[..., Plan]


@pytest.fixture
def make_replan(make_plan: MakePlan) -> Callable[..., Replan]:
    def make(status: Status = Status.CONFLICTED, **columns: Any) -> Replan:
        plan = make_plan(status=status, conflict=columns.pop("conflict", None))
        Intent.objects.filter(pk=plan.intent_id).update(latest_revision=1)
        fields = {"cause": status.value, "mode": "server"} | columns
        return Replan.objects.create(intent=plan.intent, plan=plan, **fields)

    return make


def test_the_page_says_why_since_when_and_who_must_act(
    client: Client, ada: User, make_replan: Callable[..., Replan]
) -> None:
    changed = [{"path": "refunded_cents", "planned": 0, "current": 20000}]
    make_replan(tries=2, last_error="connect: refused", conflict={"changed": changed})
    make_replan(Status.CHANGES_REQUESTED, mode="agent", reason="Only <b>March</b>, please.")
    client.force_login(ada)
    page = client.get("/replans/").text
    for words in (
        "The world moved, so the target refused it. Changed: refunded_cents.",
        "nobody: the app repeats the dry run",
        "2, next at",
        "connect: refused",
        "A reviewer asked for changes.",
        "Only &lt;b&gt;March&lt;/b&gt;, please.",
        "owned by <bdi>dana</bdi>",
    ):
        assert words in page


def test_parked_ones_are_listed_too(
    client: Client, ada: User, make_replan: Callable[..., Replan]
) -> None:
    make_replan(Status.EXPIRED)
    Replan.objects.update(status=Replan.Status.PARKED)
    client.force_login(ada)
    assert "parked: planned when a reviewer opens it" in client.get("/replans/").text


def test_finished_ones_are_gone(
    client: Client, ada: User, make_replan: Callable[..., Replan]
) -> None:
    make_replan()
    Replan.objects.update(status=Replan.Status.DONE)
    client.force_login(ada)
    assert "Nothing is being planned again" in client.get("/replans/").text


def test_planning_again_hurries_the_waiting_one(
    client: Client, ada: User, make_replan: Callable[..., Replan]
) -> None:
    replan = make_replan(tries=4)
    assert replan.plan is not None
    client.force_login(ada)
    answer = client.post(f"/intents/{replan.intent_id}/replans/")
    assert answer.status_code == 302
    assert answer["Location"] == f"/plans/billing/{replan.plan.plan_id}/"
    event = Event.objects.get(action="replan.queued")
    assert (event.actor_kind, event.actor_label) == ("person", "ada")


def test_a_page_that_opens_a_parked_plan_gets_no_content(
    client: Client, ada: User, make_replan: Callable[..., Replan]
) -> None:
    replan = make_replan(Status.EXPIRED)
    client.force_login(ada)
    url = f"/intents/{replan.intent_id}/replans/"
    opened = client.post(url, {"opened": "1"}, headers={"HX-Request": "true"})
    assert opened.status_code == 204


def test_giving_up_needs_a_note(
    client: Client, ada: User, make_replan: Callable[..., Replan]
) -> None:
    replan = make_replan()
    client.force_login(ada)
    url = f"/intents/{replan.intent_id}/abandonment/"
    for note in ("  ", "x" * 4001, "nul\x00"):
        assert client.post(url, {"note": note}).status_code == 422
    assert Intent.objects.get().status == Intent.Status.OPEN
    assert client.post(url, {"note": "Refunded by hand."}).status_code == 302
    assert Intent.objects.get().status == Intent.Status.ABANDONED
    assert Event.objects.get(action="intent.abandoned").details["note"] == "Refunded by hand."


@pytest.fixture
def ageing(make_plan: MakePlan) -> Plan:
    """Half an hour was given, one and a half minutes are left, two would be fresh enough."""
    now = clock()
    Target.objects.update(fresh_for_seconds=120)
    since, until = now - timedelta(minutes=28), now + timedelta(seconds=95)
    plan = make_plan(status=Status.PENDING, received_at=since, decide_by=until)
    Target.objects.update(fresh_for_seconds=120)
    return Plan.objects.get(pk=plan.pk)


@pytest.mark.parametrize(
    ("form", "status", "cause", "words"),
    [
        ({"opened": "1"}, 204, "opened", "ada opened {} with 1 min left; the app makes a fresh"),
        ({}, 302, "person", "ada asked for a fresh plan for {}"),
    ],
)
def test_the_trail_tells_a_page_from_a_person(
    client: Client,
    ada: User,
    ageing: Plan,
    form: dict[str, str],
    status: int,
    cause: str,
    words: str,
) -> None:
    client.force_login(ada)
    answer = client.post(f"/intents/{ageing.intent_id}/replans/", form)
    assert (answer.status_code, Replan.objects.get().cause) == (status, cause)
    told = str(sentence(Event.objects.get(action="replan.queued")))
    assert told.startswith(words.format(f"{ageing.title} for task {ageing.task_id}"))


def test_a_page_that_comes_second_plans_nothing(client: Client, ada: User, ageing: Plan) -> None:
    """Another reviewer's page was first, and the fresh plan has come: there is time enough."""
    Plan.objects.filter(pk=ageing.pk).update(decide_by=clock() + timedelta(minutes=20))
    client.force_login(ada)
    answer = client.post(f"/intents/{ageing.intent_id}/replans/", {"opened": "1"})
    assert (answer.status_code, Replan.objects.count(), Event.objects.count()) == (204, 0, 0)


def test_a_page_hurries_nothing_but_what_is_parked(
    client: Client, ada: User, make_replan: Callable[..., Replan]
) -> None:
    replan = make_replan(Status.EXPIRED, tries=4, next_try_at=clock() + timedelta(minutes=9))
    client.force_login(ada)
    url = f"/intents/{replan.intent_id}/replans/"
    assert client.post(url, {"opened": "1"}).status_code == 204
    assert not Event.objects.exists()
    Replan.objects.update(status=Replan.Status.PARKED)
    assert client.post(url, {"opened": "1"}).status_code == 204
    told = str(sentence(Event.objects.get()))
    assert told.startswith("ada opened ")
    assert told.endswith("which was parked; a fresh plan is asked for")


@pytest.mark.parametrize("verb", ["replans", "abandonment"])
@pytest.mark.parametrize(
    ("person", "status"), [("dana", 403), ("mona", 403), ("charlie", 404), ("otto", 404)]
)
def test_only_who_may_decide_may_act(
    client: Client,
    request: pytest.FixtureRequest,
    make_replan: Callable[..., Replan],
    verb: str,
    person: str,
    status: int,
) -> None:
    replan = make_replan()
    client.force_login(request.getfixturevalue(person))
    answer = client.post(f"/intents/{replan.intent_id}/{verb}/", {"note": "because"})
    assert answer.status_code == status
    assert not Event.objects.exists()


@pytest.mark.parametrize("verb", ["replans", "abandonment"])
def test_links_change_nothing(
    client: Client, ada: User, make_replan: Callable[..., Replan], verb: str
) -> None:
    replan = make_replan()
    client.force_login(ada)
    assert client.get(f"/intents/{replan.intent_id}/{verb}/").status_code == 405
    assert not Event.objects.exists()


def test_the_owner_sees_no_buttons(
    client: Client, dana: User, make_replan: Callable[..., Replan]
) -> None:
    replan = make_replan()
    client.force_login(dana)
    page = client.get("/replans/").text
    assert f"/intents/{replan.intent_id}/" not in page
    assert "It is your agent's" in page


def test_one_and_thirty_cost_the_same_queries(
    client: Client, ada: User, make_replan: Callable[..., Replan]
) -> None:
    client.force_login(ada)
    make_replan()
    few = queries_of(client)
    for _ in range(29):
        make_replan()
    assert queries_of(client) == few


def queries_of(client: Client) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get("/replans/").status_code == 200
    return len(captured)

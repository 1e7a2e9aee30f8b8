"""Reads that the agent finds later: its own words, never part of the digest (A-9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from approvals.decisions import Ballot, decide
from audit.actors import CLOCK
from audit.models import Event
from plans.evidence import MAX_ITEMS
from plans.lifecycle import Verb, transition
from plans.models import Agent, Evidence, Plan
from plans.status import Status
from tests.plans.api_calls import TOKEN, Api, dry_run
from tests.plans.story import fresh, pending

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("refund")]


@pytest.fixture
def plan(support_agent: Agent) -> Plan:
    return pending(support_agent, dry_run("pl_1"))


def add(api: Api, **item: Any) -> Any:
    return api.post("/plans/billing/pl_1/evidence", item)


@pytest.mark.parametrize(
    "item",
    [
        {"text": "It came with a cracked housing."},
        {"url": "https://mail.example.com/1"},
        {"text": "See there.", "url": "http://mail.example.com/1"},
    ],
)
def test_it_is_kept_and_changes_neither_digest_nor_tag(
    api: Api, plan: Plan, item: dict[str, str]
) -> None:
    before = api.get("/plans/billing/pl_1")
    answer = add(api, label="Customer's mail", **item)
    assert answer.status_code == 201, answer.content
    after = api.get("/plans/billing/pl_1")
    assert after["ETag"] == before["ETag"]
    assert answer.json()["content_digest"] == fresh(plan).digest == plan.digest
    stored = Evidence.objects.get()
    assert {"text": stored.text, "url": stored.url} == {"text": "", "url": ""} | item
    event = Event.objects.get(action="evidence.added")
    assert (event.actor_kind, event.plan_id, event.details) == (
        *("agent", "pl_1", {"label": "Customer's mail"}),
    )


def test_a_page_that_was_open_before_still_decides(api: Api, plan: Plan, ada: User) -> None:
    shown = plan.digest
    add(api, label="Late", text="Found after the page was opened.")
    assert decide(ada, plan.pk, Ballot("approve", "", shown)).status == Status.APPROVED


def test_reviewers_read_it_as_the_agents_words(
    api: Api, plan: Plan, ada: User, client: Client
) -> None:
    add(api, label="Mail", text="<b>Pay at once</b>")
    client.force_login(ada)
    page = client.get("/plans/billing/pl_1/").text
    assert "&lt;b&gt;Pay at once&lt;/b&gt;" in page
    assert "<b>Pay at once" not in page


@pytest.mark.parametrize(
    ("item", "code"),
    [
        ({"text": "x"}, "missing-field"),
        ({"label": "x"}, "missing-field"),
        ({"label": "", "text": "x"}, "invalid-field"),
        ({"label": "x", "url": "javascript:alert(1)"}, "invalid-field"),
        ({"label": "x", "text": "y", "html": "z"}, "unknown-field"),
        ({"label": "x", "text": f"[{TOKEN}]"}, "token-elsewhere"),
        ({"label": TOKEN, "text": "x"}, "token-elsewhere"),
        ({"label": "x", "url": f"https://x.example.com/?t={TOKEN}"}, "token-elsewhere"),
    ],
)
def test_what_is_no_evidence_is_refused(
    api: Api, plan: Plan, item: dict[str, str], code: str
) -> None:
    answer = add(api, **item)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert TOKEN not in answer.content.decode()
    assert not Evidence.objects.exists()


def test_a_plan_takes_only_so_much(api: Api, plan: Plan) -> None:
    rows = [Evidence(plan=plan, label="x", text="y") for _ in range(MAX_ITEMS - 1)]
    Evidence.objects.bulk_create(rows)
    assert add(api, label="the last", text="x").status_code == 201
    assert add(api, label="one more", text="x").status_code == 422


def test_a_closed_plan_takes_none(api: Api, plan: Plan) -> None:
    with transaction.atomic():
        transition(Plan.objects.locked(plan.pk), Verb.REJECT, actor=CLOCK)
    answer = add(api, label="x", text="y")
    assert (answer.status_code, answer.json()["plan_status"]) == (409, "rejected")


def test_nobody_adds_to_another_agents_plan(
    plan: Plan, dana: User, make_api_key: Callable[..., str]
) -> None:
    stranger = Api(make_api_key(Agent.objects.create(name="other-agent", owner=dana)))
    assert add(stranger, label="x", text="y").status_code == 404
    assert not Evidence.objects.exists()

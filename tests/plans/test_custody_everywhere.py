"""A recognisable token and credential walk every way a plan can take, and are nowhere (A-2, A-18).

The target repeats both in every answer. Looked at afterwards: every column of every table, the
logs, the doorbell's arguments, what agents and people are answered, and what an operator sees.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from celery import signals
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from plans import custody, replanning, tasks
from plans.configuration.permissions import grant_operators
from plans.models import Agent, Plan, Replan
from plans.status import TERMINAL, Status
from plans.sweeper import carry_out
from plans.verification import verify
from tests.plans.api_calls import Api
from tests.plans.planning_target import HANG_UP, Body, PlanningTarget, Reply, Seen, dry_run
from tests.plans.story import INPUTS, approved, fresh

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("refund")]
TOKEN = "ptok_recognise_me_0123456789abcdef"
CREDENTIAL = "billing-token-of-the-tests"
ECHO = {"seen": f"Bearer {CREDENTIAL} with {TOKEN}", "again": [TOKEN, {CREDENTIAL: TOKEN}]}
CHANGED = [{"path": TOKEN, "planned": f"<{TOKEN}>", "current": CREDENTIAL}]

# How the target answers the commit, and what becomes of the plan.
ENDS: dict[str, tuple[Reply, Status]] = {
    "applied": (
        Reply(200, {"plan_id": "plan_walk", "status": "applied", "result": ECHO}),
        Status.COMMITTED,
    ),
    "conflict": (
        Reply(409, {"changed": CHANGED, "plan_created_at": TOKEN, "detail": TOKEN}),
        Status.CONFLICTED,
    ),
    "refused": (Reply(400, {"code": TOKEN, "detail": f"no {TOKEN} {CREDENTIAL}"}), Status.FAILED),
    "locked out": (Reply(401, {"title": TOKEN, "detail": CREDENTIAL}), Status.FAILED),
    "late": (Reply(410, {"detail": TOKEN, "type": f"https://x/{TOKEN}"}), Status.EXPIRED),
    "later": (Reply(429, ECHO, {"Retry-After": TOKEN}), Status.COMMITTING),
    "broken": (Reply(500, ECHO, {"Location": f"/{TOKEN}", "Date": CREDENTIAL}), Status.UNKNOWN),
    "nonsense": (Reply(200, f"<p>{TOKEN} {CREDENTIAL}".encode()), Status.UNKNOWN),
    "silence": (HANG_UP, Status.UNKNOWN),
}


class Heard:
    """Everything that left through a side door while the plan walked."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def published(self, body: Any = None, headers: Any = None, **_: Any) -> None:
        self.texts.append(repr((body, headers)))


@pytest.fixture
def heard() -> Iterator[Heard]:
    ear = Heard()
    signals.before_task_publish.connect(ear.published)
    yield ear
    signals.before_task_publish.disconnect(ear.published)


def database() -> str:
    """Every row of every table as PostgreSQL writes it; bytes in hex and as text."""
    found: list[str] = []
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            cursor.execute(f'SELECT t::text FROM "{model._meta.db_table}" AS t')
            found += [row[0] for row in cursor.fetchall()]
    return "\n".join(found)


def assert_nowhere(where: str, text: str) -> None:
    for secret in (TOKEN, CREDENTIAL):
        assert secret not in text, f"{where} tells {secret!r}"
        # As a problem's code is spelt.
        assert secret.replace("_", "-") not in text.lower().replace("_", "-"), where
        assert secret.encode().hex() not in text, f"{where} tells {secret!r} in hex"


def walked_dry_run(planning: PlanningTarget, **told: Any) -> Body:
    dry = dry_run(plan_id="plan_walk", plan_token=TOKEN)
    planning.knows(dry).update(told)
    return dry


def submitted_by(api: Api, dry: Body) -> tuple[Plan, Any]:
    body = {
        "target": "billing",
        "operation": "refund",
        "task_id": "task-1",
        "inputs": INPUTS.decode(),
        "plan": dry,
    }
    answer = api.post("/plans", body)
    assert answer.status_code == 201
    return Plan.objects.get(), answer


def answers(api: Api, person: User, operator: User, plan: Plan) -> str:
    """What an agent, a reviewer and an operator are shown, status lines and headers included."""
    intent = f"/intents/{plan.intent_id}"
    paths = (f"/plans/billing/{plan.plan_id}", "/plans", intent, "/events")
    told = [api.get(path) for path in paths]
    pages = Client()
    pages.force_login(person)
    told += [pages.get(reverse(name)) for name in ("review", "replans", "decisions")]
    told += [pages.get(reverse("plan", args=["billing", plan.plan_id]))]
    pages.force_login(operator)
    told += [pages.get(reverse(name)) for name in ("unresolved", "settings", "audit")]
    told += [pages.get(f"{reverse('audit_export')}?format={kind}") for kind in ("csv", "jsonl")]
    for name in ("plan", "attempt", "target", "replan", "intent"):
        told.append(pages.get(f"/admin/plans/{name}/"))
        for row in apps.get_model("plans", name).objects.all():
            told.append(pages.get(f"/admin/plans/{name}/{row.pk}/change/"))
    assert {answer.status_code for answer in told} == {200}
    return "\n".join(f"{answer.headers} {_body(answer)}" for answer in told)


def _body(answer: Any) -> str:
    content = answer.getvalue() if answer.streaming else answer.content
    return str(content.decode())


@pytest.mark.parametrize("end", ENDS)
def test_no_end_of_a_plan_tells_its_token(
    end: str,
    api_key: str,
    ada: User,
    mona: User,
    otto: User,
    planning: PlanningTarget,
    heard: Heard,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    grant_operators()
    otto.groups.add(*mona.groups.all())
    api = Api(api_key)
    plan, told = submitted_by(api, walked_dry_run(planning, debug=ECHO))
    verify(plan.pk)
    assert fresh(plan).status == Status.PENDING
    plan = approved(ada, plan)
    tasks.ring_for(plan)
    reply, status = ENDS[end]
    planning.script["commit"] = lambda _: reply
    if reply.status in (409, 410):
        planning.knows({"plan_id": plan.plan_id}).update(ECHO, status="open")
    carry_out(plan.pk)
    plan = fresh(plan)
    assert plan.status == status
    assert (plan.token is None) == (status in TERMINAL)
    assert plan.token_sha256 == custody.token_digest(TOKEN)
    assert_nowhere("the database", database())
    assert ("[token removed]" in database()) == (end != "silence")
    assert_nowhere("an answer", _body(told) + answers(api, ada, otto, plan))
    assert_nowhere("a task", "\n".join(heard.texts))
    assert heard.texts
    assert_nowhere("a log", caplog.text + "".join(capfd.readouterr()))
    assert_nowhere("a repr", repr([plan, *plan.attempts.all(), vars(plan.target)]))


@pytest.mark.parametrize(
    "told",
    [{"actions": [ECHO]}, {"input_fingerprint": TOKEN}, {"inputs": ECHO}, {"plan_id": CREDENTIAL}],
)
def test_no_mismatch_tells_it(
    told: Body,
    api_key: str,
    ada: User,
    mona: User,
    otto: User,
    planning: PlanningTarget,
    capfd: pytest.CaptureFixture[str],
) -> None:
    grant_operators()
    otto.groups.add(*mona.groups.all())
    api = Api(api_key)
    plan, _ = submitted_by(api, walked_dry_run(planning, **told))
    verify(plan.pk)
    plan = fresh(plan)
    assert (plan.status, plan.token) == (Status.MISMATCHED, None)
    assert_nowhere("the database", database())
    assert_nowhere("an answer", answers(api, ada, otto, plan))
    assert_nowhere("a log", "".join(capfd.readouterr()))


@pytest.mark.parametrize("status", [200, 400, 422, 500])
def test_no_replan_tells_it(
    status: int,
    support_agent: Agent,
    api_key: str,
    ada: User,
    mona: User,
    otto: User,
    planning: PlanningTarget,
    capfd: pytest.CaptureFixture[str],
) -> None:
    grant_operators()
    otto.groups.add(*mona.groups.all())
    api = Api(api_key)
    wish = {"target": "billing", "operation": "refund", "task_id": "t"}
    answer = api.post("/intents", {**wish, "inputs": INPUTS.decode()})
    assert answer.status_code == 201

    def echo(_: Seen) -> Reply:
        dry = walked_dry_run(planning)
        return Reply(status, {**dry, "debug": ECHO, "code": TOKEN, "detail": f"{CREDENTIAL}!"})

    planning.script["dry_run"] = echo
    made = replanning.run(Replan.objects.get().pk)
    assert (made is not None) == (status == 200)
    assert_nowhere("the database", database())
    shown = answers(api, ada, otto, Plan.objects.get()) if made else _body(api.get("/events"))
    assert_nowhere("an answer", shown)
    assert_nowhere("a log", "".join(capfd.readouterr()))


def test_no_refusal_tells_it(api_key: str, refund: Any) -> None:
    api = Api(api_key)
    for place in ("summary", "reason", "task_id", "replaces", "idempotency_key", TOKEN):
        dry = dry_run(plan_id="plan_walk", plan_token=TOKEN)
        body = {"target": "billing", "operation": "refund", "task_id": "t", "plan": dry}
        answer = api.post("/plans", {**body, "inputs": INPUTS.decode(), place: TOKEN})
        assert answer.status_code == 422
        told = json.dumps([dict(answer.headers), answer.content.decode()])
        if place != TOKEN:
            assert_nowhere("a refusal", told)

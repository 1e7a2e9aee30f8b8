"""What is no route of the interface, nobody's plan or nobody's fault is a problem too."""

from __future__ import annotations

import pytest
from django.core.exceptions import SuspiciousOperation
from django.db import InterfaceError, OperationalError

from plans import listing
from plans.errors import NotFound
from plans.models import Plan
from tests.plans.api_calls import TOKEN, Api, without

pytestmark = pytest.mark.django_db


def test_a_stranger_finds_nothing(stranger: Api, plan: Plan) -> None:
    there = stranger.get("/plans/billing/pl_1")
    nowhere = stranger.get("/plans/billing/pl_2")
    assert there.status_code == nowhere.status_code == 404
    gone = {"instance", "server_time"}
    assert without(there.json(), *gone) == without(nowhere.json(), *gone)
    assert stranger.get("/plans").json() == {"items": [], "next": None}
    assert stranger.get(f"/intents/{plan.intent_id}").status_code == 404
    body = {"reason": "other"}
    assert stranger.post("/plans/billing/pl_1/abandonment", body).status_code == 404
    assert Plan.objects.get().status == "verifying"


@pytest.mark.parametrize(
    "path",
    [
        "/plans/billing/pl_1/",
        "/plans//billing/pl_1",
        "/plans/billing//pl_1",
        "//plans",
        "/plans/",
        "/plans/billing/pl_1%00",
        "/plans/bil%00ling/pl_1",
        "/plans/billing/pl_1;x=1",
        "/plans/billing/PL_1",
        "/plans/Billing/pl_1",
        "/PLANS/billing/pl_1",
        "/plans/billing/..",
        "/plans/billing/.",
        "/plans/billing/%2e%2e",
        "/plans/billing/pl%201",
        "/plans/billing/pl_1%0a",
        "/plans/billing/%ff",
        "/plans/billing/pl_1/decision",
        "/plans/billing/pl_%D0%B0",
        "/intents/1",
        "/intents/%00",
        "/intents/{00000000-0000-0000-0000-000000000000}",
        "/intents/00000000000000000000000000000000",
        "/nothing",
        "",
        "/",
    ],
)  # BI-29, BI-47
def test_a_path_trick_is_never_another_route(api: Api, plan: Plan, path: str) -> None:
    answer = api.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/plans/billing/pl_1", "GET"),
        ("PUT", "/plans/billing/pl_1", "GET"),
        ("GET", "/plans/billing/pl_1/abandonment", "POST"),
        ("PATCH", "/plans", "GET, POST"),
        ("OPTIONS", "/intents", "POST"),
    ],
)
def test_another_method_is_a_problem_too(
    api: Api, plan: Plan, method: str, path: str, allowed: str
) -> None:
    answer = api.client.generic(method, f"/api/v1{path}", headers=api.headers)
    assert (answer.status_code, answer.json()["code"]) == (405, "method-not-allowed")
    assert sorted(answer["Allow"].split(", ")) == allowed.split(", ")


@pytest.mark.parametrize("override", ["X-HTTP-Method-Override", "X-Method-Override"])
def test_no_header_overrides_the_method(api: Api, plan: Plan, override: str) -> None:  # BI-43
    headers = api.headers | {override: "POST"}
    path = "/api/v1/plans/billing/pl_1/abandonment?_method=post"
    assert api.client.get(path, headers=headers).status_code == 405
    assert Plan.objects.get().status == "verifying"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (OperationalError("server closed the connection"), 503, "database-away"),
        (InterfaceError("connection already closed"), 503, "database-away"),
        (RuntimeError(f"a secret: {TOKEN}"), 500, "internal-error"),
        (SuspiciousOperation("junk"), 400, "invalid-header"),
        (NotFound(), 404, "not-found"),
    ],
)
def test_every_error_is_a_problem_without_its_words(
    api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, code: str
) -> None:
    def fail(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr(listing, "page_of", fail)
    answer = api.get("/plans")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert ("Retry-After" in answer) is (status == 503)
    assert "secret" not in answer.content.decode()

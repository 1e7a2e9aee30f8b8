"""API keys at the door: who asks, and whether the key is good now (SEC-34)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from audit.models import ClockTimestamp
from plans import custody
from plans.models import Agent, ApiKey, Operation, Plan
from tests.plans.api_calls import Api, submission

pytestmark = pytest.mark.django_db


def refused(answer: Any) -> None:
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer["WWW-Authenticate"] == "Bearer"
    assert answer.json()["next_action"] == "stop"


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Basic {key}",
        "{key}",
        "Bearer {key}, Bearer {key}",
        "Bearer {key}x",
        "Bearer {key}\u00e9",
        "Token {key}",
        f"Bearer cs_{'0' * 16}_{'0' * 64}",
    ],
)
def test_a_header_without_a_good_key_is_refused(
    api_key: str, refund: Operation, authorization: str | None
) -> None:
    api = Api(api_key)
    api.headers = (
        {} if authorization is None else {"Authorization": authorization.format(key=api_key)}
    )
    refused(api.get("/plans"))
    refused(api.post("/plans", submission()))
    # Who has no key is told nothing else: not even that the body is no JSON.
    refused(api.post("/plans", b"\xff", "text/plain"))
    assert not Plan.objects.exists()


def test_a_right_id_with_a_wrong_secret_is_refused(api_key: str) -> None:
    _, _, other = custody.new_api_key()
    refused(Api(api_key[:20] + other[20:]).get("/plans"))


@pytest.mark.parametrize(
    "columns",
    [
        {"revoked_at": ClockTimestamp()},
        {"expires_at": ClockTimestamp()},
        {"expires_at": ClockTimestamp() - timedelta(days=1)},
    ],
)
def test_a_key_that_is_over_is_refused_at_once(api_key: str, columns: dict[str, Any]) -> None:
    assert Api(api_key).get("/plans").status_code == 200
    ApiKey.objects.update(**columns)
    refused(Api(api_key).get("/plans"))


def test_a_key_works_until_it_expires(api_key: str) -> None:
    soon = ClockTimestamp() + timedelta(minutes=1)
    ApiKey.objects.update(expires_at=soon, revoked_at=soon)
    assert Api(api_key).get("/plans").status_code == 200


def test_the_keys_of_an_agent_that_is_switched_off_are_refused(api_key: str) -> None:
    Agent.objects.update(active=False)
    refused(Api(api_key).get("/plans"))


def test_the_scheme_is_read_in_any_case(api_key: str) -> None:
    api = Api(api_key)
    api.headers = {"Authorization": f"bearer {api_key}"}
    assert api.get("/plans").status_code == 200


def test_the_last_use_moves_after_a_minute(api_key: str) -> None:
    Api(api_key).get("/plans")
    ApiKey.objects.update(last_used_at=F("last_used_at") - timedelta(seconds=61))
    before = ApiKey.objects.get().last_used_at
    Api(api_key).get("/plans")
    after = ApiKey.objects.get().last_used_at
    assert before is not None
    assert after is not None
    assert after - before > timedelta(seconds=60)


@pytest.mark.parametrize(
    ("scope", "method", "path"),
    [
        ("plans:read", "POST", "/plans"),
        ("plans:read", "POST", "/intents"),
        ("plans:read", "POST", "/plans/billing/pl_1/abandonment"),
        ("plans:write", "GET", "/plans"),
        ("plans:write", "GET", "/plans/billing/pl_1"),
        ("audit:read", "GET", "/intents/00000000-0000-0000-0000-000000000000"),
    ],
)
def test_every_endpoint_demands_its_scope(
    support_agent: Agent, make_api_key: Any, scope: str, method: str, path: str
) -> None:
    api = Api(make_api_key(support_agent, scope))
    answer = api.get(path) if method == "GET" else api.post(path, submission())
    assert (answer.status_code, answer.json()["code"]) == (403, "missing-scope")


def test_the_secret_is_in_no_log_line(api_key: str, capfd: pytest.CaptureFixture[str]) -> None:
    ApiKey.objects.update(scopes=[])
    Api(api_key).get("/plans")
    Api(api_key[:-1] + "0").get("/plans")
    written = capfd.readouterr()
    assert api_key[20:] not in written.out + written.err

"""What the server says about itself."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from plans.errors import CATALOGUE

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/api/v1/openapi.json", "/openapi.json"])
def test_the_interface_is_an_openapi_document(client: Client, path: str) -> None:
    document = client.get(path).json()
    assert document["openapi"].startswith("3.1")
    assert {
        ("/api/v1/plans", "post"),
        ("/api/v1/plans", "get"),
        ("/api/v1/plans/{target}/{plan_id}", "get"),
        ("/api/v1/plans/{target}/{plan_id}/abandonment", "post"),
        ("/api/v1/intents", "post"),
        ("/api/v1/intents/{intent_id}", "get"),
    } <= {(path, method) for path, methods in document["paths"].items() for method in methods}


def test_every_reference_of_the_document_resolves(client: Client) -> None:
    text = client.get("/openapi.json").content.decode()
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    references = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert references
    assert references <= schemas.keys()
    assert '"#/$defs' not in text


def test_refusals_are_documented_as_problems(client: Client) -> None:
    submit = client.get("/openapi.json").json()["paths"]["/api/v1/plans"]["post"]
    assert list(submit["responses"]["422"]["content"]) == ["application/problem+json"]
    assert list(submit["responses"]["201"]["content"]) == ["application/json"]
    plan = client.get("/openapi.json").json()["components"]["schemas"]["SubmissionIn"]
    assert "plan_token" in plan["properties"]["plan"]["dependentRequired"]
    assert plan["additionalProperties"] is False


def test_events_are_documented_by_their_own_names(client: Client) -> None:
    event = client.get("/openapi.json").json()["components"]["schemas"]["EventOut"]
    assert {"from", "to"} <= event["properties"].keys()


@pytest.mark.parametrize("path", ["/docs", "/api/v1/docs", "/problems"])
def test_the_pages_load_nothing_from_elsewhere(client: Client, path: str) -> None:
    page = client.get(path).content.decode()
    assert "/api/v1/plans" in page or "plan-expired" in page
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)


@pytest.mark.parametrize("code", CATALOGUE)
def test_the_type_of_every_problem_is_a_page(client: Client, code: str) -> None:
    page = client.get(f"/problems/{code}")
    assert page.status_code == 200
    assert code in page.content.decode()


def test_an_unknown_code_has_no_page(client: Client) -> None:
    assert client.get("/problems/no-such-code").status_code == 404

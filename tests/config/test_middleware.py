"""What happens around every request: IDs, origins, refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import Client, RequestFactory

from config import refusals
from config.middleware import PeopleOnly, Problems, RequestContext, client_address
from plans.errors import NotFound, PlanExpired
from plans.replies import refuse as refuse_by

PROBLEM = "application/problem+json"
DECISION = "/plans/billing/pl_1/decision/"
factory = RequestFactory()


def fine(request: HttpRequest) -> HttpResponse:
    return HttpResponse("fine")


@pytest.mark.parametrize("given", ["run-0001", "a" * 64, "A.b_c-d1"])
def test_a_request_keeps_the_id_it_came_with(given: str) -> None:
    request = factory.get("/", headers={"X-Request-Id": given})
    assert RequestContext(fine)(request).headers["X-Request-Id"] == given


@pytest.mark.parametrize(
    "given", ["", "short", "a" * 65, "with space", "line\nfeed-1", "ünicode-1"]
)
def test_any_other_id_is_replaced(given: str) -> None:
    request = factory.get("/")
    request.META["HTTP_X_REQUEST_ID"] = given
    made = RequestContext(fine)(request).headers["X-Request-Id"]
    assert made != given
    assert len(made) == 32


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("", None),
        ("unix:", None),
    ],
)
def test_the_address_is_the_peers(remote: str, address: str | None) -> None:
    request = factory.get("/", headers={"X-Forwarded-For": "1.2.3.4"})
    request.META["REMOTE_ADDR"] = remote
    assert client_address(request) == address


# SEC-5: a machine never decides


@pytest.mark.parametrize("header", ["Bearer cs_0_0", "bearer x", "Bearer"])
@pytest.mark.parametrize("path", [DECISION, "/review/", "/nowhere/"])
def test_a_key_can_never_decide(db: None, ada: User, header: str, path: str) -> None:
    client = Client()
    client.force_login(ada)
    answer = client.post(path, headers={"Authorization": header, "Accept": PROBLEM})
    assert (answer.status_code, answer.json()["code"]) == (403, "machine-cannot-decide")


def test_an_agent_that_missed_the_path_gets_a_problem(db: None) -> None:
    answer = Client().get("/API/v1/plans", headers={"Authorization": "Bearer x"})
    assert (answer.status_code, answer["Content-Type"]) == (404, PROBLEM)


def test_a_person_reads_why_as_a_page(db: None) -> None:
    headers = {"Authorization": "Bearer x", "Accept": "text/html"}
    answer = Client().post(DECISION, headers=headers)
    assert answer.status_code == 403
    assert "machine-cannot-decide" in answer.content.decode()
    assert answer["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site", "junk"])
def test_another_site_cannot_post(db: None, site: str) -> None:  # BI-44
    answer = Client().post(DECISION, headers={"Sec-Fetch-Site": site, "Accept": PROBLEM})
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden-origin")


@pytest.mark.parametrize("site", ["same-origin", "none", None])
def test_our_own_pages_can(site: str | None) -> None:
    request = factory.post("/", headers={} if site is None else {"Sec-Fetch-Site": site})
    assert PeopleOnly(fine)(request).status_code == 200


def test_a_link_from_another_site_leads_to_a_page() -> None:
    request = factory.get("/", headers={"Sec-Fetch-Site": "cross-site"})
    assert PeopleOnly(fine)(request).status_code == 200


def test_a_missing_csrf_token_is_a_problem(db: None, ada: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    answer = client.post(DECISION, {"verdict": "approve"}, headers={"Accept": PROBLEM})
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden-origin")


# Refusals


def test_a_problem_raised_by_a_view_is_answered_as_asked() -> None:
    around = Problems(fine)
    error = PlanExpired(plan_id="pl_1")
    asked = factory.post("/x/", headers={"Accept": f"text/html;q=0.1, {PROBLEM}"})
    answer: Any = around.process_exception(asked, error)
    assert (answer.status_code, answer["Content-Type"]) == (410, PROBLEM)
    assert json.loads(answer.content)["plan_id"] == "pl_1"
    assert answer["Cache-Control"] == "no-store"


@pytest.mark.parametrize("error", [OperationalError("gone"), InterfaceError("gone")])
@pytest.mark.parametrize("path", ["/review/", "/api/v1/plans"])
def test_a_database_that_is_away_is_503(error: Exception, path: str) -> None:
    answer: Any = Problems(fine).process_exception(factory.get(path), error)
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")


def test_other_errors_are_left_to_django() -> None:
    assert Problems(fine).process_exception(factory.get("/"), ValueError()) is None


def test_an_error_in_a_middleware_is_a_problem_too() -> None:
    request = factory.get("/api/v1/plans")
    try:
        raise OperationalError("gone")
    except OperationalError:
        assert refusals.server_error(request).status_code == 503
    assert refusals.server_error(request).status_code == 500
    page = refusals.server_error(factory.get("/review/"))
    assert page.status_code == 500
    assert page["Content-Type"].startswith("text/html")


def test_an_unknown_page_is_a_page_or_a_problem(client: Client, db: None) -> None:
    page = client.get("/nowhere/")
    assert (page.status_code, page["Content-Type"][:9]) == (404, "text/html")
    problem = client.get("/nowhere/", headers={"Accept": PROBLEM})
    assert (problem.status_code, problem.json()["code"]) == (404, "not-found")


def test_a_page_that_needs_a_person_says_so_to_machines(client: Client, db: None) -> None:
    answer = client.get("/review/", headers={"Accept": PROBLEM})
    assert (answer.status_code, answer.json()["code"]) == (401, "sign-in-required")


def test_a_host_that_is_not_ours_is_refused(client: Client) -> None:
    answer = client.get("/api/v1/plans", headers={"Host": "evil.example"})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid-header")


@pytest.mark.parametrize("status", [400, 403, 404, 405, 413, 500, 503])
def test_no_plain_refusal_leaves_the_rest_interface(status: int) -> None:
    def refuse(request: HttpRequest) -> HttpResponse:
        return HttpResponse("no", status=status, headers={"Allow": "GET"})

    answer: Any = Problems(refuse)(factory.get("/api/v1/plans"))
    assert (answer.status_code, answer["Content-Type"]) == (status, PROBLEM)
    assert answer["Allow"] == "GET"


def test_the_report_of_a_health_check_is_left_alone() -> None:
    def unavailable(request: HttpRequest) -> HttpResponse:
        return JsonResponse({"status": "unavailable"}, status=503)

    request = factory.get("/health/ready", headers={"Accept": PROBLEM})
    answer: Any = Problems(unavailable)(request)
    assert json.loads(answer.content) == {"status": "unavailable"}


def test_a_problem_keeps_its_own_words() -> None:
    def refuse(request: HttpRequest) -> HttpResponse:
        return refuse_by(request, NotFound("No such plan."))

    answer: Any = Problems(refuse)(factory.get("/api/v1/plans"))
    assert json.loads(answer.content)["detail"] == "No such plan."

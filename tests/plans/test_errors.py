"""Problems: one table for the code, the answers and the documentation (A-16, A-17)."""

import json
from datetime import UTC, datetime, timedelta, timezone
from io import StringIO
from pathlib import Path
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from plans import errors, generated_page
from plans.errors import CATALOGUE, NEXT_ACTIONS, FieldError, Problem
from plans.generated_page import DOCS
from plans.management.commands import document_problems

CONTRACT = [
    (400, ["malformed-json", "duplicate-member", "invalid-utf8", "invalid-unicode", "too-deep"]),
    (400, ["invalid-header"]),
    (401, ["unauthenticated"]),
    (403, ["missing-scope", "machine-cannot-decide", "not-allowed", "forbidden-origin"]),
    (403, ["policy-denied"]),
    (404, ["not-found"]),
    (405, ["method-not-allowed"]),
    (409, ["already-decided", "superseded", "commit-in-flight", "predecessor-unresolved"]),
    (409, ["plan-already-submitted", "predecessor-committed", "task-ended", "intent-closed"]),
    (409, ["idempotency-key-taken", "not-decidable"]),
    (410, ["plan-expired"]),
    (412, ["digest-mismatch", "precondition-failed"]),
    (413, ["body-too-large"]),
    (415, ["unsupported-media-type", "content-encoding-not-allowed"]),
    (422, ["not-an-object", "too-many-members", "string-too-long", "nul-not-allowed"]),
    (422, ["number-out-of-range", "unsafe-integer", "negative-zero", "unknown-field"]),
    (422, ["missing-field", "invalid-field", "offset-required", "invalid-timestamp"]),
    (422, ["already-expired", "window-too-short", "window-too-long", "invalid-plan-id"]),
    (422, ["token-elsewhere", "no-actions", "too-many-actions", "duplicate-action"]),
    (422, ["inputs-invalid", "unknown-target", "unknown-operation", "invalid-idempotency-key"]),
    (422, ["note-required", "invalid-note", "id-mismatch", "invalid-cursor", "invalid-limit"]),
    (428, ["digest-missing"]),
    (429, ["too-many-pending", "rate-limited"]),
    (503, ["database-away"]),
]


@pytest.mark.parametrize(("status", "codes"), CONTRACT)
def test_the_codes_of_the_contract_have_their_status(status: int, codes: list[str]) -> None:
    assert {code: CATALOGUE[code].status for code in codes} == dict.fromkeys(codes, status)


@pytest.mark.parametrize("problem", CATALOGUE.values(), ids=CATALOGUE)
def test_every_problem_says_what_it_is_and_what_to_do(problem: type[Problem]) -> None:
    assert getattr(errors, problem.__name__) is problem
    assert problem.next_action in NEXT_ACTIONS
    assert problem.message().endswith(".")
    assert 0 < len(problem.title) <= 40
    assert str(problem()) == f"{problem.code}: {problem.message()}"


def test_the_documented_table_is_the_code() -> None:
    assert (DOCS / "problems.md").read_text("utf-8") == document_problems.render()


def test_the_command_writes_the_page_and_notices_a_stale_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "problems.md"
    monkeypatch.setattr(generated_page, "DOCS", tmp_path)
    command = document_problems.Command(stdout=StringIO())
    with pytest.raises(CommandError, match="stale"):
        call_command(command, check=True)
    call_command(command)
    call_command(command, check=True)
    assert page.read_text("utf-8").count("<a id=") == len(CATALOGUE)


def test_the_body_has_the_members_of_a_problem() -> None:
    problem = errors.AlreadyDecided(
        plan_id="pln_1",
        plan_status="approved",
        decided_by="ada",
        decided_at=datetime(2026, 3, 14, 10, 0, 0, 500, tzinfo=timezone(timedelta(hours=1))),
        changed=None,
    )
    body = problem.body(
        type_base="https://countersign.example/problems/",
        instance="/plans/billing/pln_1",
        server_time="2026-03-14T09:41:12.000Z",
    )
    assert body == {
        "type": "https://countersign.example/problems/already-decided",
        "title": "Already decided",
        "status": 409,
        "detail": "Somebody else has already decided this plan.",
        "instance": "/plans/billing/pln_1",
        "code": "already-decided",
        "next_action": "wait",
        "server_time": "2026-03-14T09:41:12.000Z",
        "plan_id": "pln_1",
        "plan_status": "approved",
        "decided_by": "ada",
        "decided_at": "2026-03-14T09:00:00.000Z",
    }


def test_the_body_suits_any_json_encoder() -> None:
    value = UUID(int=1)
    problem = errors.NotDecidable(
        intent_id=value, changed=[{"at": datetime(2026, 1, 1, tzinfo=UTC)}]
    )
    body = problem.body(type_base="/problems", instance="/", server_time="")
    assert json.loads(json.dumps(body))["intent_id"] == str(value)


def test_faults_are_listed_with_their_pointers() -> None:
    both = errors.InvalidField(
        "Two fields are wrong.",
        errors=[FieldError("/a", "not a number"), FieldError("/b", "empty")],
    )
    body = both.body(type_base="", instance="", server_time="")
    assert body["errors"] == [
        {"pointer": "/a", "detail": "not a number"},
        {"pointer": "/b", "detail": "empty"},
    ]
    assert errors.UnknownField("No such member.", pointer="/Plan_Id").errors == [
        FieldError("/Plan_Id", "No such member.")
    ]


@pytest.mark.parametrize(
    ("problem", "headers"),
    [
        (errors.PlanExpired(), {"Cache-Control": "no-store"}),
        (errors.Unauthenticated(), {"WWW-Authenticate": "Bearer"}),
        (errors.UnsupportedMediaType(), {"Accept": "application/json"}),
        (errors.ContentEncodingNotAllowed(), {"Accept-Encoding": "identity"}),
        (errors.MethodNotAllowed(headers={"Allow": "GET, HEAD"}), {"Allow": "GET, HEAD"}),
        (errors.RateLimited(retry_after=0.2, limit=600), {"Retry-After": "1"}),
        (errors.RateLimited(retry_after=1.2), {"Retry-After": "2"}),
        (errors.DatabaseAway(), {"Retry-After": "2"}),
        (errors.NotFound(), {}),
    ],
)
def test_headers_go_with_the_problem(problem: Problem, headers: dict[str, str]) -> None:
    assert problem.headers == headers


def test_a_member_cannot_hide_a_member_of_the_problem() -> None:
    with pytest.raises(TypeError, match="reserved"):
        errors.NotFound(status="pending")

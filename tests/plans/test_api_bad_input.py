"""The bad-input table at the REST edge: the right answer, the right place, and not one row (BI)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plans.models import Agent, Operation, Plan
from tests.plans.api_calls import (
    BIDI,
    INPUTS,
    LOOKALIKE,
    TOKEN,
    Api,
    refused,
    submission,
    without,
)

pytestmark = pytest.mark.django_db

GOOD = json.dumps(submission())
AMOUNT = '{"amount_cents":%s,"invoice_id":"4412"}'
DIGITS = "1" * 5000
JSON = "application/json"


@pytest.fixture
def api(api_key: str, refund: Operation) -> Api:
    return Api(api_key)


def top(members: str) -> str:
    """The good submission's text with a member more."""
    return GOOD[:-1] + "," + members + "}"


@pytest.mark.parametrize(
    ("text", "status", "code", "pointer"),
    [
        (top('"reason":"a","reason":"b"'), 400, "duplicate-member", "/reason"),  # BI-1
        (top('"reason":"a","\\u0072eason":"b"'), 400, "duplicate-member", "/reason"),  # BI-2
        (top('"reason":NaN'), 400, "malformed-json", None),  # BI-3
        (top('"reason":-Infinity'), 400, "malformed-json", None),
        (top('"x":1e400'), 422, "number-out-of-range", "/x"),  # BI-4
        (top('"x":9007199254740993'), 422, "unsafe-integer", "/x"),  # BI-5
        (top(f'"x":{DIGITS}'), 422, "unsafe-integer", "/x"),  # BI-6
        (top('"reason":"\\ud800"'), 400, "invalid-unicode", "/reason"),  # BI-7
        (top('"\\udfff":1'), 400, "invalid-unicode", ""),
        (top('"reason":"a\\u0000b"'), 422, "nul-not-allowed", "/reason"),  # BI-8
        (GOOD.encode()[:-1] + b',"reason":"\xff"}', 400, "invalid-utf8", None),  # BI-9
        (GOOD.encode("utf-16"), 400, "invalid-utf8", None),  # BI-10
        (b"\xef\xbb\xbf" + GOOD.encode(), 400, "malformed-json", None),
        (GOOD + "x", 400, "malformed-json", None),  # BI-11
        (GOOD + GOOD, 400, "malformed-json", None),
        ("", 400, "malformed-json", None),
        ("   ", 400, "malformed-json", None),
        ("null", 422, "not-an-object", ""),
        ("[]", 422, "not-an-object", ""),
        ('"x"', 422, "not-an-object", ""),
        (top(f'"x":{"[" * 32}{"]" * 32}'), 400, "too-deep", None),  # BI-12
        (top(f'"x":{"[" * 100_000}{"]" * 100_000}'), 400, "too-deep", None),
        (top(f'"x":[{"1," * 2000}1]'), 422, "too-many-members", ""),
        (top(f'"reason":"{"a" * 65_537}"'), 422, "string-too-long", "/reason"),
        ('{"x":"' + "a" * 262_144 + '"}', 413, "body-too-large", None),  # BI-13
        (top('"x":-0'), 422, "negative-zero", "/x"),  # BI-18
    ],
)
def test_the_text_itself_is_wrong(
    api: Api, text: str | bytes, status: int, code: str, pointer: str | None
) -> None:
    refused(api.post("/plans", text), status, code, pointer)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (top('\n"reason" "a"'), "Line 2, column 10: a colon is expected."),
        (GOOD[:-1], f"Line 1, column {len(GOOD)}: the text ends, and a comma or }} is expected."),
    ],
)
def test_a_broken_text_is_told_where_and_by_which_rule(api: Api, text: str, detail: str) -> None:
    answer = api.post("/plans", text)
    refused(answer, 400, "malformed-json")
    assert answer.json()["detail"] == detail


@pytest.mark.parametrize(
    ("content_type", "headers", "code", "told"),
    [
        (JSON, {"Content_Encoding": "gzip"}, "content-encoding-not-allowed", "identity"),
        ("text/plain", {}, "unsupported-media-type", "application/json"),
        ("", {}, "unsupported-media-type", "application/json"),
        ("application/json; charset=latin-1", {}, "unsupported-media-type", "application/json"),
        ("application/x-www-form-urlencoded", {}, "unsupported-media-type", "application/json"),
        ("multipart/form-data; boundary=x", {}, "unsupported-media-type", "application/json"),
        ("application/jsonp", {}, "unsupported-media-type", "application/json"),
    ],
)  # BI-14, BI-15
def test_the_envelope_is_wrong(
    api: Api, content_type: str, headers: dict[str, str], code: str, told: str
) -> None:
    for body in (GOOD, ""):
        answer = api.post("/plans", body, content_type, **headers)
        refused(answer, 415, code)
        assert told in (answer.get("Accept"), answer.get("Accept-Encoding"))


@pytest.mark.parametrize(
    "content_type", ['application/json; charset="UTF-8"', "Application/JSON", "application/json;"]
)
def test_utf8_by_any_of_its_spellings_is_read(api: Api, content_type: str) -> None:
    assert api.post("/plans", GOOD, content_type).status_code == 201


@pytest.mark.parametrize(
    ("members", "code", "pointer"),
    [
        ({"approved": True}, "unknown-field", "/approved"),  # BI-16, A-21
        ({"Task_Id": "t"}, "unknown-field", "/Task_Id"),
        ({"a/b~c": 1}, "unknown-field", "/a~1b~0c"),
        ({"plan": {"Plan_Id": "x"}}, "unknown-field", "/plan/Plan_Id"),
        ({"plan": None}, "invalid-field", "/plan"),
        ({"plan": []}, "invalid-field", "/plan"),
        ({"plan": {}}, "invalid-plan-id", "/plan/plan_id"),
        ({"target": None}, "invalid-field", "/target"),
        ({"target": 7}, "invalid-field", "/target"),
        ({"target": ""}, "invalid-field", "/target"),
        ({"target": "nowhere"}, "unknown-target", "/target"),
        ({"operation": LOOKALIKE}, "unknown-operation", "/operation"),  # BI-33
        ({"operation": f"re{BIDI}fund"}, "unknown-operation", "/operation"),  # BI-32
        ({"task_id": ""}, "invalid-field", "/task_id"),
        ({"task_id": "a b"}, "invalid-field", "/task_id"),
        ({"task_id": "t" * 129}, "invalid-field", "/task_id"),
        ({"task_id": "٤"}, "invalid-field", "/task_id"),
        ({"task_id": 1}, "invalid-field", "/task_id"),
        ({"summary": 1}, "invalid-field", "/summary"),
        ({"replaces": "../x"}, "invalid-plan-id", "/replaces"),
        ({"replaces": ".."}, "invalid-plan-id", "/replaces"),
        ({"replaces": "nobodys"}, "unknown-predecessor", "/replaces"),
        ({"replan_id": "1"}, "invalid-field", "/replan_id"),
        ({"replan_id": 1.0}, "invalid-field", "/replan_id"),
        ({"replan_id": True}, "invalid-field", "/replan_id"),
        ({"replan_id": 0}, "invalid-field", "/replan_id"),
        ({"replan_id": 4412}, "unknown-replan", "/replan_id"),
        ({"idempotency_key": ""}, "invalid-idempotency-key", "/idempotency_key"),  # BI-30
        ({"idempotency_key": "x"}, "invalid-idempotency-key", "/idempotency_key"),
        ({"idempotency_key": "k" * 10_000}, "invalid-idempotency-key", "/idempotency_key"),
        ({"idempotency_key": "schlüssel"}, "invalid-idempotency-key", "/idempotency_key"),
        ({"idempotency_key": "line\nfeed"}, "invalid-idempotency-key", "/idempotency_key"),
        ({"idempotency_key": "trailing\n"}, "invalid-idempotency-key", "/idempotency_key"),
        ({"evidence": {}}, "invalid-field", "/evidence"),
        ({"evidence": [{"label": ""}]}, "invalid-field", "/evidence/0/label"),
        ({"evidence": [{"label": "x"}]}, "missing-field", "/evidence/0"),
        ({"evidence": [{"text": "x"}]}, "missing-field", "/evidence/0/label"),
        ({"evidence": [{"label": "x", "html": "y"}]}, "unknown-field", "/evidence/0/html"),
        ({"evidence": [{"label": "x", "url": "javascript:1"}]}, "invalid-field", "/evidence/0/url"),
        ({"reason": f"it is {TOKEN}"}, "token-elsewhere", "/reason"),
        ({"summary": TOKEN.replace("p", "\\u0070")}, "token-elsewhere", "/summary"),
        ({TOKEN: 1}, "token-elsewhere", ""),
    ],
)
def test_a_member_is_wrong(api: Api, members: dict[str, Any], code: str, pointer: str) -> None:
    refused(api.post("/plans", submission(**members)), 422, code, pointer)


@pytest.mark.parametrize("name", ["target", "operation", "task_id", "inputs", "plan"])
def test_a_member_is_missing(api: Api, name: str) -> None:
    refused(api.post("/plans", without(submission(), name)), 422, "missing-field", f"/{name}")


@pytest.mark.parametrize(
    ("inputs", "code", "pointer"),
    [
        ("", "malformed-json", "/inputs"),
        ("null", "not-an-object", "/inputs"),
        ('{"a":1,"a":2}', "duplicate-member", "/inputs"),
        ('{"a":NaN}', "malformed-json", "/inputs"),
        ('{"a":"\ud800"}', "invalid-unicode", "/inputs"),
        ('{"a":"\\ud800"}', "invalid-unicode", "/inputs"),
        ('{"a":"\\u0000"}', "nul-not-allowed", "/inputs"),
        ("[" * 33, "too-deep", "/inputs"),
        (AMOUNT % "9007199254740993", "unsafe-integer", "/inputs"),
        (AMOUNT % "1e400", "number-out-of-range", "/inputs"),
        (AMOUNT % "-0", "negative-zero", "/inputs"),
        (AMOUNT % '"48000"', "inputs-invalid", "/inputs/amount_cents"),  # BI-17
        (AMOUNT % "true", "inputs-invalid", "/inputs/amount_cents"),
        (AMOUNT % '"٤٨٠٠٠"', "inputs-invalid", "/inputs/amount_cents"),
        (AMOUNT % '" 48_000 "', "inputs-invalid", "/inputs/amount_cents"),
        (AMOUNT % "48000.0", "inputs-invalid", "/inputs/amount_cents"),
        (AMOUNT % "48000.5", "inputs-invalid", "/inputs/amount_cents"),
        (AMOUNT % "0", "inputs-invalid", "/inputs/amount_cents"),  # BI-18
        (AMOUNT % "-1", "inputs-invalid", "/inputs/amount_cents"),
        ('{"invoice_id":"4412"}', "inputs-invalid", "/inputs"),
        (7, "invalid-field", "/inputs"),
        (None, "invalid-field", "/inputs"),
        ([], "invalid-field", "/inputs"),
        ({"amount_cents": True}, "inputs-invalid", "/inputs/amount_cents"),
    ],
)
def test_the_inputs_are_wrong(api: Api, inputs: Any, code: str, pointer: str) -> None:
    answer = api.post("/plans", submission(inputs=inputs))
    # A raw surrogate inside the body is a fault of the body.
    raw = isinstance(inputs, str) and "\ud800" in inputs
    refused(answer, 400 if raw else 422, code, pointer)


def test_text_that_looks_like_code_comes_back_as_it_was_sent(api: Api) -> None:  # BI-35…BI-37
    words = '<img onerror=1>{{7*7}} hx-get="/x" javascript:1 \x1b[31m\r' + "\n" * 5000
    answer = api.post("/plans", submission(reason=words, inputs=INPUTS))
    assert answer.status_code == 201
    assert Plan.objects.get().reason == words


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({}, "missing-field", "/reason"),
        ({"reason": "because"}, "invalid-field", "/reason"),
        ({"reason": "other", "note": 1}, "invalid-field", "/note"),
        ({"reason": "other", "note": "n" * 4001}, "invalid-field", "/note"),
        ({"reason": "other", "plan_id": "pl_2"}, "unknown-field", "/plan_id"),
    ],
)
def test_an_abandonment_is_wrong(api: Api, body: Any, code: str, pointer: str) -> None:
    api.post("/plans", submission())
    answer = api.post("/plans/billing/pl_1/abandonment", body)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert Plan.objects.get().status == "verifying"


def test_every_fault_of_a_request_is_told_at_once(api: Api) -> None:
    answer = api.post("/plans", submission(task_id="a b", evidence=7, summary=7, extra=1))
    refused(answer, 422, "unknown-field", "/extra")
    pointers = [error["pointer"] for error in answer.json()["errors"]]
    assert set(pointers) == {"/extra", "/task_id", "/evidence", "/summary"}


def test_an_intent_is_checked_like_a_plan(api: Api) -> None:
    intent = without(submission(), "plan")
    refused(api.post("/intents", intent | {"plan": {}}), 422, "unknown-field", "/plan")
    refused(api.post("/intents", intent | {"inputs": "{"}), 422, "malformed-json", "/inputs")
    refused(api.post("/intents", intent | {"target": "x"}), 422, "unknown-target", "/target")
    refused(api.post("/intents", intent | {"task_id": ""}), 422, "invalid-field", "/task_id")


def test_the_pending_cap_is_named(api: Api, support_agent: Agent) -> None:
    Agent.objects.filter(pk=support_agent.pk).update(pending_cap=0)
    answer = api.post("/plans", submission())
    refused(answer, 429, "too-many-pending")
    assert answer.json()["limit"] == 0
    assert int(answer["Retry-After"]) > 0

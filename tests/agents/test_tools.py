"""Tools before anything is sent: their shapes, what they take, and what never gets out."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx
import mcp_types
import pytest
from jsonschema import Draft202012Validator
from openai.types.chat import ChatCompletionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from countersign_agent import Client, Guard
from countersign_agent.instants import now, write_instant
from countersign_agent.tools import (
    COMMIT_SCHEMA,
    OUTPUT_SCHEMA,
    PROPOSE_WRITE,
    TOOLS,
    WAIT_FOR_DECISION,
    CommitIncomplete,
    Offer,
    Toolbox,
    commit_call,
    for_anthropic,
    for_mcp,
    for_openai,
    for_openai_chat,
    offering,
)

ALL = (*TOOLS, WAIT_FOR_DECISION)
REFUND = Offer(
    "billing", "refund", "pays money back", {"type": "object", "required": ["invoice_id"]}
)
TOKEN = "ptok_0123456789abcdef0123456789abcdef"
SHAPES = {
    "openai": for_openai,
    "openai chat": for_openai_chat,
    "anthropic": for_anthropic,
    "mcp": for_mcp,
}


def refuse_to_send(request: httpx.Request) -> httpx.Response:
    raise AssertionError(f"{request.method} {request.url} left the process")


@pytest.fixture
def tools() -> Iterator[Toolbox]:
    """A task whose client sends nothing."""
    client = Client("http://127.0.0.1:9", "cs_x_y", transport=httpx.MockTransport(refuse_to_send))
    yield Toolbox(Guard(client).task("t"), [REFUND])
    client.close()


def wish(**members: Any) -> dict[str, Any]:
    inputs = {"invoice_id": "4412", "amount_cents": 1500}
    words = {"target": "billing", "operation": "refund", "reason": "Broken."}
    return {**words, "inputs": inputs, **members}


# ── Shapes ──────────────────────────────────────────────────────────────────────────────────
def test_each_shape_is_what_its_api_takes() -> None:
    for made in for_openai():
        TypeAdapter(FunctionToolParam).validate_python(made)
    for made in for_openai_chat():
        TypeAdapter(ChatCompletionToolParam).validate_python(made)
    for made in for_mcp(ALL):
        mcp_types.Tool.model_validate(made)
    assert {frozenset(made) for made in for_anthropic()} == {
        frozenset({"name", "description", "input_schema"})
    }


@pytest.mark.parametrize("tool", [*ALL, *offering([REFUND]), *offering([REFUND, REFUND])])
def test_parameters_are_json_schema_that_is_closed(tool: Any) -> None:
    schema = {**tool.parameters, "$schema": "https://json-schema.org/draft/2020-12/schema"}
    Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) <= set(schema["properties"])


@pytest.mark.parametrize("shape", SHAPES)
def test_no_tool_takes_or_returns_a_token(shape: str) -> None:
    """SEC-38."""
    assert [tool.name for tool in TOOLS] == [
        *("propose_write", "plan_status", "report_write", "withdraw", "end_task"),
    ]
    text = json.dumps(SHAPES[shape](ALL))
    assert "token" not in text
    assert "fingerprint" not in text


@pytest.mark.parametrize("shape", SHAPES)
def test_the_rule_of_frozen_inputs_is_told(shape: str) -> None:
    text = json.dumps(SHAPES[shape](TOOLS))
    assert "A plan is for exactly these inputs" in text
    assert "propose the new inputs as a new plan" in text


def test_no_tool_can_decide() -> None:
    names = {name for tool in ALL for name in (tool.name, *tool.parameters["properties"])}
    assert not {name for name in names if any(w in name for w in ("approve", "verdict", "commit"))}


def test_annotations_say_what_destroys_and_what_may_be_repeated() -> None:
    hints = {made["name"]: made["annotations"] for made in for_mcp(ALL)}
    assert all(each["idempotentHint"] for each in hints.values())
    assert {name for name, each in hints.items() if each["destructiveHint"]} == {
        *("propose_write", "withdraw", "end_task"),
    }
    assert {name for name, each in hints.items() if each["readOnlyHint"]} == {
        *("plan_status", "wait_for_decision"),
    }


def test_offers_become_choices() -> None:
    (tool, *_) = offering([REFUND])
    properties = tool.parameters["properties"]
    assert properties["target"]["enum"] == ["billing"]
    assert properties["operation"]["enum"] == ["refund"]
    assert properties["inputs"]["required"] == ["invoice_id"]
    assert "refund at billing (pays money back)" in tool.description
    assert "enum" not in PROPOSE_WRITE.parameters["properties"]["target"]


def test_what_is_handed_out_is_the_callers_own() -> None:
    for_openai()[0]["parameters"]["properties"].clear()
    assert for_openai()[0]["parameters"]["properties"]


# ── Arguments ───────────────────────────────────────────────────────────────────────────────
BAD: list[tuple[str, Any]] = [
    ("propose_write", wish(plan_token=TOKEN)),
    ("propose_write", wish(input_fingerprint="sha256:1")),
    ("propose_write", wish(approved=True)),
    ("propose_write", wish(**{TOKEN: "x"})),
    ("propose_write", wish(reason="")),
    ("propose_write", wish(reason=None)),
    ("propose_write", wish(inputs="{}")),
    ("propose_write", wish(inputs=[])),
    ("propose_write", wish(inputs={"amount_cents": 2**60})),
    ("propose_write", wish(replaces="../4412")),
    ("propose_write", wish(replaces="plan_unknown")),
    ("propose_write", wish(operation="delete")),
    ("propose_write", wish(target=7)),
    ("propose_write", {}),
    ("propose_write", None),
    ("propose_write", "no JSON"),
    ("propose_write", '{"reason": "a", "reason": "b"}'),
    ("plan_status", {"plan_id": ""}),
    ("plan_status", {"plan_id": "plan_unknown"}),
    ("plan_status", {"plan_id": "plan_1", "plan_token": TOKEN}),
    ("wait_for_decision", {"plan_id": "plan_1", "seconds": 0}),
    ("wait_for_decision", {"plan_id": "plan_1", "seconds": 26}),
    ("wait_for_decision", {"plan_id": "plan_1", "seconds": True}),
    ("report_write", {"objects": [], "tool": "x"}),
    ("report_write", {"objects": ["a"] * 201, "tool": "x"}),
    ("report_write", {"objects": [""], "tool": "x"}),
    ("report_write", {"objects": "invoice/1", "tool": "x"}),
    ("report_write", {"objects": ["invoice/1"], "tool": "x" * 201}),
    ("withdraw", {"plan_id": "plan_unknown"}),
    ("withdraw", {}),
    ("approve", {"plan_id": "plan_1"}),
    ("__class__", {}),
]


@pytest.mark.parametrize(("name", "arguments"), BAD)
def test_a_bad_call_is_answered_and_nothing_is_sent(
    tools: Toolbox, name: str, arguments: Any
) -> None:
    answer = tools.call(name, arguments)
    Draft202012Validator(OUTPUT_SCHEMA).validate(answer)
    assert answer["next_action"] == "fix_request"
    assert answer["error"]["detail"]
    assert TOKEN not in json.dumps(answer)


@pytest.mark.parametrize(("name", "arguments"), BAD)
def test_what_the_schema_refuses_is_refused_here_too(
    tools: Toolbox, name: str, arguments: Any
) -> None:
    """Our own reader is no more generous than a JSON Schema library."""
    schemas = {tool.name: tool.parameters for tool in offering([REFUND], ALL)}
    if name not in schemas or not isinstance(arguments, dict):
        return
    if not Draft202012Validator(schemas[name]).is_valid(arguments):
        assert tools.call(name, arguments)["error"]["kind"] == "BadArguments"


def test_without_a_server_it_says_so() -> None:
    answer = Toolbox(Guard().task("t")).call("propose_write", wish())
    assert answer["error"]["kind"] == "NotConfigured"


def test_a_defect_is_an_answer_too_and_its_words_stay_here(
    tools: Toolbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(TOKEN)

    monkeypatch.setattr(tools.core.task, "status", broken)
    with caplog.at_level(logging.DEBUG):
        answer = tools.call("plan_status", {"plan_id": "plan_1"})
    assert answer["next_action"] == "investigate"
    assert "RuntimeError" in answer["error"]["detail"]
    assert TOKEN not in json.dumps(answer) + caplog.text


# ── The commit, for programs ────────────────────────────────────────────────────────────────
def commit(**members: Any) -> dict[str, Any]:
    whole = {
        "plan_id": "plan_1",
        "plan_token": TOKEN,
        "input_fingerprint": "sha256:1",
        "expires_at": write_instant(now() + timedelta(minutes=5)),
        "idempotency_key": "idem_12345678",
        **members,
    }
    return {name: value for name, value in whole.items() if value is not ...}


def test_a_whole_commit_carries_exactly_token_and_fingerprint() -> None:
    Draft202012Validator.check_schema(COMMIT_SCHEMA)
    Draft202012Validator(COMMIT_SCHEMA).validate(commit())
    call = commit_call("refund", commit(), attempt=2)
    assert json.loads(call.body.reveal()) == {
        "plan_token": TOKEN,
        "input_fingerprint": "sha256:1",
    }
    assert (call.plan_id, call.idempotency_key, call.attempt) == ("plan_1", "idem_12345678", 2)
    assert TOKEN not in repr(call)


@pytest.mark.parametrize("value", [..., None, "", 7])
@pytest.mark.parametrize("name", sorted(COMMIT_SCHEMA["properties"]))
def test_a_commit_that_lacks_something_fails_before_it_is_sent(name: str, value: Any) -> None:
    """A token without a plan ID, above all."""
    members = commit(**{name: value})
    assert not Draft202012Validator(COMMIT_SCHEMA).is_valid(members)
    with pytest.raises(CommitIncomplete) as refused:
        commit_call("refund", members)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize(
    "members",
    [
        {"inputs": {"amount_cents": 1}},
        {"plan_id": "../1"},
        {"idempotency_key": "short"},
    ],
)
def test_a_commit_with_something_else_fails_too(members: dict[str, Any]) -> None:
    assert not Draft202012Validator(COMMIT_SCHEMA).is_valid(commit(**members))
    with pytest.raises(CommitIncomplete):
        commit_call("refund", commit(**members))


def test_members_depend_on_each_other_in_a_larger_document_too() -> None:
    """A-1: presence and no empty text."""
    taken = {name: COMMIT_SCHEMA[name] for name in ("properties", "dependentRequired")}
    larger = Draft202012Validator({"type": "object", **taken})
    assert larger.is_valid({"other": 1})
    assert not larger.is_valid({"plan_token": TOKEN})
    assert not larger.is_valid({"input_fingerprint": "sha256:1"})
    assert not larger.is_valid(commit(plan_id=None, idempotency_key=...))
    assert larger.is_valid(commit(idempotency_key=...))


@pytest.mark.parametrize("when", ["2020-01-01T00:00:00Z", "tomorrow", "2030-01-01T00:00:00"])
def test_an_expired_or_unreadable_plan_is_not_sent(when: str) -> None:
    with pytest.raises(CommitIncomplete) as refused:
        commit_call("refund", commit(expires_at=when))
    assert refused.value.next_action == ("replan" if when.startswith("2020") else "fix_request")

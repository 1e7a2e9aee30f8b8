"""What counts as a plan at all: A-1, A-18, A-19 and BI-24 … BI-39."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plans.errors import Problem
from plans.inspection import check_inputs, check_window, inspect_plan
from plans.models import Operation, Target
from tests.plans.planning_target import dry_run

SCHEMA = {
    "type": "object",
    "properties": {
        "invoice_id": {"type": "string", "pattern": "^[0-9]{1,12}$"},
        "amount_cents": {"type": "integer", "minimum": 1},
    },
    "required": ["invoice_id", "amount_cents"],
    "additionalProperties": False,
}
NOW = datetime(2026, 3, 14, 9, 41, 12, tzinfo=UTC)
TARGET = Target(name="billing")
REFUND = Operation(
    target=TARGET,
    name="refund",
    ops=["update"],
    fields=["refunded_cents", "status"],
    inputs_schema=SCHEMA,
)
ANY = Operation(target=TARGET, name="anything")


def action(**members: Any) -> dict[str, Any]:
    same = {"op": "update", "target": "invoice/4412", "field": "status"}
    return {**same, "from": 0, "to": 1, **members}


def refusal(plan: Any, operation: Operation = ANY) -> tuple[str, str]:
    """The code, and where it points."""
    with pytest.raises(Problem) as refused:
        inspect_plan(plan, operation)
    assert refused.value.status == 422
    return refused.value.code, refused.value.errors[0].pointer


@pytest.mark.parametrize(
    "plan_id",
    [
        "",
        ".",
        "..",
        "a/b",
        "a%2fb",
        "a b",
        "x" * 129,
        "pl\u0430n",
        "plan\U0001f600",
        "a\n",
        None,
        7,
    ],
)
def test_it_refuses_a_plan_id_that_could_lead_elsewhere(plan_id: object) -> None:
    assert refusal(dry_run(plan_id=plan_id)) == ("invalid-plan-id", "/plan/plan_id")


@pytest.mark.parametrize("plan_id", ["a", "...", "A.b_c~d-9", "x" * 128])
def test_it_takes_every_plan_id_of_the_grammar(plan_id: str) -> None:
    assert inspect_plan(dry_run(plan_id=plan_id), ANY).plan_id == plan_id


@pytest.mark.parametrize(
    ("token", "code"),
    [
        (None, "missing-field"),
        ("", "invalid-field"),
        ("   ", "invalid-field"),
        ("a\r\nX-Evil: 1", "invalid-field"),
        ("t\u00f6ken", "invalid-field"),
        (["x"], "invalid-field"),
        ("x" * 16_385, "string-too-long"),
    ],
)
def test_it_refuses_what_is_no_token(token: object, code: str) -> None:
    assert refusal(dry_run(plan_token=token)) == (code, "/plan/plan_token")


@pytest.mark.parametrize("name", ["plan_id", "plan_token", "expires_at", "input_fingerprint"])
def test_it_needs_every_required_member(name: str) -> None:
    plan = {key: value for key, value in dry_run().items() if key != name}
    assert refusal(plan)[1] == f"/plan/{name}"


@pytest.mark.parametrize("text", ["", "a b", "x" * 257, "sha256:\u00e9", "a\tb", None, 3])
def test_it_refuses_a_fingerprint_that_is_not_printable_ascii(text: object) -> None:
    assert refusal(dry_run(input_fingerprint=text)) == ("invalid-field", "/plan/input_fingerprint")


@pytest.mark.parametrize("text", ["sha256:00FF", "md4:1", "whatever!", "x" * 256])
def test_a_fingerprint_is_opaque(text: str) -> None:
    assert inspect_plan(dry_run(input_fingerprint=text), ANY).input_fingerprint == text


@pytest.mark.parametrize(
    ("actions", "code", "pointer"),
    [
        (None, "missing-field", ""),
        ({}, "missing-field", ""),
        ([], "no-actions", ""),
        ([action(to=n) for n in range(21)], "too-many-actions", ""),
        ([action(), action()], "duplicate-action", "/1"),
        ([action(), action(to=2), {**action()}], "duplicate-action", "/2"),
        (["update"], "invalid-field", "/0"),
        ([{k: v for k, v in action().items() if k != "from"}], "missing-field", "/0/from"),
        ([{k: v for k, v in action().items() if k != "op"}], "missing-field", "/0/op"),
        ([action(op="")], "invalid-field", "/0/op"),
        ([action(op="up date")], "invalid-field", "/0/op"),
        ([action(op="upd\u0430te")], "invalid-field", "/0/op"),
        ([action(field=1)], "invalid-field", "/0/field"),
        ([action(target="")], "invalid-field", "/0/target"),
        ([action(target=None)], "invalid-field", "/0/target"),
        ([action(target="x" * 301)], "invalid-field", "/0/target"),
    ],
)
def test_it_refuses_actions_that_nobody_could_review(
    actions: object, code: str, pointer: str
) -> None:
    assert refusal(dry_run(actions=actions)) == (code, f"/plan/actions{pointer}")


@pytest.mark.parametrize(
    "hidden",
    "\u202e\u2066\u200b\ufeff\U000e0041\u3164\u115f\ufe0f\u180b\u2800\u00a0\u00ad\u2028"
    " \n\x1b\x7f\ue000\u0378\U000e0101",
)
def test_it_refuses_an_object_or_cover_with_something_invisible(hidden: str) -> None:
    name = f"invoice/44{hidden}12"
    assert refusal(dry_run(actions=[action(target=name)]))[1] == "/plan/actions/0/target"
    assert refusal(dry_run(covers=[name])) == ("invalid-field", "/plan/covers")


def test_it_takes_hidden_characters_in_values() -> None:
    plan = dry_run(actions=[action(to="\u202epaid\u3164<script>{{7*7}}\x1b[2J")])
    assert inspect_plan(plan, ANY).actions == plan["actions"]


@pytest.mark.parametrize(
    ("change", "pointer"), [({"op": "delete"}, "op"), ({"field": "amount"}, "field")]
)
def test_it_refuses_what_the_operation_may_not_do(change: dict[str, str], pointer: str) -> None:
    answer = refusal(dry_run(actions=[action(**change)]), REFUND)
    assert answer == ("action-not-allowed", f"/plan/actions/0/{pointer}")


def test_twenty_actions_are_not_too_many() -> None:
    plan = dry_run(actions=[action(to=n) for n in range(20)])
    assert len(inspect_plan(plan, REFUND).actions) == 20


def test_an_action_that_changes_nothing_is_only_odd() -> None:
    assert inspect_plan(dry_run(actions=[action(to=0)]), REFUND).actions[0]["to"] == 0


@pytest.mark.parametrize("covers", ["invoice/4412", [1], [""], {}, ["x"] * 201, [None]])
def test_it_refuses_covers_that_name_no_objects(covers: object) -> None:
    assert refusal(dry_run(covers=covers)) == ("invalid-field", "/plan/covers")


def test_covers_and_creation_are_optional() -> None:
    plan = dry_run()
    del plan["covers"], plan["created_at"]
    facts = inspect_plan(plan, REFUND)
    assert (facts.covers, facts.created_at) == (None, None)


def test_unknown_members_are_kept_and_the_token_is_not() -> None:
    plan = dry_run(warnings=["big"], note="x")
    kept = {name: value for name, value in plan.items() if name != "plan_token"}
    facts = inspect_plan(plan, REFUND)
    assert facts.document == kept
    assert plan["plan_token"] not in repr(facts)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2026-03-14T09:41:12", "offset-required"),
        ("2026-03-14 09:41:12Z", "invalid-timestamp"),
        ("2026-03-14T09:41:60Z", "invalid-timestamp"),
        ("2026-03-14T09:41:12.1234567Z", "invalid-timestamp"),
        ("2026-03-14T09:41:12-00:00", "invalid-timestamp"),
        ("2026-03-14T09:41:12+15:00", "invalid-timestamp"),
        ("infinity", "invalid-timestamp"),
        (1773481272, "invalid-timestamp"),
    ],
)
def test_it_refuses_an_expiry_that_readers_disagree_about(text: object, code: str) -> None:
    assert refusal(dry_run(expires_at=text)) == (code, "/plan/expires_at")
    assert refusal(dry_run(created_at=text)) == (code, "/plan/created_at")


def at(offset: timedelta, **limits: Any) -> datetime:
    """Inspect a plan that expires so long after NOW; the answer is its `decide_by`."""
    expires = (NOW + offset).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    facts = inspect_plan(dry_run(expires_at=expires), ANY)
    return check_window(facts, Target(name="billing", **limits), NOW)


@pytest.mark.parametrize(
    ("offset", "code"),
    [
        (timedelta(0), "already-expired"),
        (timedelta(seconds=-1), "already-expired"),
        (timedelta(milliseconds=1), "window-too-short"),
        (timedelta(seconds=59, milliseconds=999), "window-too-short"),
        (timedelta(hours=24, milliseconds=1), "window-too-long"),
    ],
)
def test_it_refuses_a_window_outside_the_targets_limits(offset: timedelta, code: str) -> None:
    with pytest.raises(Problem) as refused:
        at(offset)
    assert (refused.value.code, refused.value.status) == (code, 422)
    assert refused.value.errors[0].pointer == "/plan/expires_at"


@pytest.mark.parametrize(
    "text", ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00"], ids=["last", "beyond"]
)
def test_the_end_of_the_calendar_is_too_long_a_window(text: str) -> None:
    facts = inspect_plan(dry_run(expires_at=text), ANY)
    with pytest.raises(Problem, match="window-too-long"):
        check_window(facts, TARGET, NOW)


def test_before_the_calendar_is_expired() -> None:
    facts = inspect_plan(dry_run(expires_at="0001-01-01T00:00:00+14:00"), ANY)
    with pytest.raises(Problem, match="already-expired"):
        check_window(facts, TARGET, NOW)


@pytest.mark.parametrize(
    ("offset", "margin"),
    [(timedelta(seconds=600), 45.0), (timedelta(seconds=60), 15.0), (timedelta(hours=24), 45.0)],
)
def test_decisions_end_a_send_margin_before_the_expiry(offset: timedelta, margin: float) -> None:
    assert at(offset) == NOW + offset - timedelta(seconds=margin)


@pytest.mark.parametrize(
    ("inputs", "pointer"),
    [
        ({"invoice_id": "4412", "amount_cents": "48000"}, "/inputs/amount_cents"),
        ({"invoice_id": "4412", "amount_cents": 48000.0}, "/inputs/amount_cents"),
        ({"invoice_id": "4412", "amount_cents": True}, "/inputs/amount_cents"),
        ({"invoice_id": "4412", "amount_cents": 0}, "/inputs/amount_cents"),
        ({"invoice_id": "4412", "amount_cents": -1}, "/inputs/amount_cents"),
        ({"invoice_id": "\u0664\u0664\u0661\u0662", "amount_cents": 1}, "/inputs/invoice_id"),
        ({"invoice_id": "4412\n", "amount_cents": 1}, "/inputs/invoice_id"),
        ({"invoice_id": "4412", "Amount_cents": 1}, "/inputs"),
        ({}, "/inputs"),
    ],
)
def test_it_holds_inputs_against_the_operations_schema(inputs: Any, pointer: str) -> None:
    with pytest.raises(Problem) as refused:
        check_inputs(inputs, REFUND)
    assert (refused.value.code, refused.value.status) == ("inputs-invalid", 422)
    assert pointer in [error.pointer for error in refused.value.errors]


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^\d+$", "12", "\u0661\u0662"),
        (r"^[\d-]+$", "1-2", "\u0661-\u0662"),
        (r"^\$[$a]\$$", "$$$", "$a$\n"),
        (r"^\\d$", "\\d", "1"),
    ],
)
def test_patterns_mean_what_json_schema_says(pattern: str, good: str, bad: str) -> None:
    schema = {"properties": {"text": {"pattern": pattern}}}
    operation = Operation(target=TARGET, inputs_schema=schema)
    check_inputs({"text": good}, operation)
    with pytest.raises(Problem, match="inputs-invalid"):
        check_inputs({"text": bad}, operation)


def test_pointers_into_inputs_are_escaped() -> None:
    schema = {"properties": {"a/b~c": {"type": "integer"}}}
    with pytest.raises(Problem) as refused:
        check_inputs({"a/b~c": "x"}, Operation(target=TARGET, inputs_schema=schema))
    assert refused.value.errors[0].pointer == "/inputs/a~1b~0c"


def test_an_operation_without_a_schema_takes_any_object() -> None:
    check_inputs({"anything": [1, None]}, ANY)

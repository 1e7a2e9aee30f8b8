"""The sentence of a plan: only what the target said, exact, or the plain fallback (B-10)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from approvals import titles
from plans.models import Operation, Plan, Target

REFUND = "Refund {delta.refunded_cents:money:USD} on {object}"
ASKED = "{inputs.amount_cents:money:USD}"


def a_plan(
    *actions: dict[str, Any],
    title: str = REFUND,
    asked: str = ASKED,
    inputs: object = None,
    formats: dict[str, str] | None = None,
    verified: bool = True,
) -> Plan:
    target = Target(name="billing", base_url="http://127.0.0.1:8001")
    operation = Operation(
        target=target, name="refund", title=title, asked=asked, formats=formats or {}
    )
    return Plan(
        target=target,
        operation=operation,
        plan_id="plan_1",
        inputs=json.dumps(inputs if inputs is not None else {"amount_cents": 48000}).encode(),
        actions=list(actions) or [change("refunded_cents", 20000, 48000)],
        verification="verified" if verified else "unavailable",
    )


def change(field: str, before: object, after: object, obj: str = "invoice/4412") -> dict[str, Any]:
    return {"op": "update", "target": obj, "field": field, "from": before, "to": after}


def test_it_says_what_the_target_will_do() -> None:
    assert titles.title(a_plan()) == "Refund 280.00 USD on invoice/4412"


@pytest.mark.parametrize(
    ("template", "before", "after", "expected"),
    [
        ("{delta.f:money:USD}", 0, 190000, "1,900.00 USD"),
        ("{delta.f:money:USD}", 48000, 20000, "-280.00 USD"),
        ("{delta.f:money:JPY}", 0, 1900, "1,900 JPY"),
        ("{delta.f:money:KWD}", 0, 1900, "1.900 KWD"),
        ("{to.f:money:USD}", 0, "9007199254740993", "90,071,992,547,409.93 USD"),
        ("{to.f:money:USD}", 0, 5, "0.05 USD"),
        ("{to.f:number}", 0, 1234567, "1,234,567"),
        ("{delta.f}", 0.1, 0.3, "0.2"),
        ("{from.f}: {to.f}", True, "scale", "true: scale"),
        ("{to.f:date}", None, "2026-03-14T09:41:12+01:00", "2026-03-14 08:41:12 UTC"),
        ("{to.f:date}", None, "2026-03-14", "2026-03-14"),
    ],
)
def test_it_formats_exactly(template: str, before: object, after: object, expected: str) -> None:
    assert titles.title(a_plan(change("f", before, after), title=template)) == expected


def test_the_operation_s_format_applies_where_the_template_names_none() -> None:
    plan = a_plan(title="To {to.refunded_cents}", formats={"refunded_cents": "money:USD"})
    assert titles.title(plan) == "To 480.00 USD"


@pytest.mark.parametrize(
    ("title", "actions"),
    [
        ("", [change("f", 1, 2)]),
        ("{to.g}", [change("f", 1, 2)]),
        ("{to.f", [change("f", 1, 2)]),
        ("{inputs.amount_cents}", [change("f", 1, 2)]),
        ("{to.__class__}", [change("f", 1, 2)]),
        ("{to.f:money:USD}", [change("f", 1, 1.5)]),
        ("{to.f:money:USD}", [change("f", 1, True)]),
        ("{to.f:money:usd}", [change("f", 1, 2)]),
        ("{to.f:roman}", [change("f", 1, 2)]),
        ("{delta.f}", [change("f", None, 2)]),
        ("{delta.f}", [change("f", "a", "b")]),
        ("{to.f}", [change("f", 1, None)]),
        ("{to.f}", [change("f", 1, {"deep": 1})]),
        ("{to.f}", [change("f", 1, "")]),
        ("{to.f}", [change("f", 1, "x" * 81)]),
        ("{to.f:number}", [change("f", 1, "٤٨")]),
    ],
)
def test_a_template_that_cannot_be_filled_falls_back(
    title: str, actions: list[dict[str, Any]]
) -> None:
    assert titles.title(a_plan(*actions, title=title)) == "refund on invoice/4412"


def test_a_field_of_two_actions_is_not_picked_from() -> None:
    plan = a_plan(change("f", 1, 2, "a/1"), change("f", 1, 3, "a/2"), title="{to.f} on {object}")
    assert titles.title(plan) == "refund on a/1, a/2"


def test_many_objects_are_counted() -> None:
    plan = a_plan(*[change("f", 1, 2, f"a/{n}") for n in range(5)], title="{object}")
    assert titles.title(plan) == "a/0, a/1, a/2 and 2 more objects"


def test_an_unverified_plan_says_operation_and_objects_only() -> None:
    plan = a_plan(verified=False)
    assert titles.title(plan) == "refund on invoice/4412"
    assert titles.asked(plan) == ""


def test_deceptive_characters_are_spelt_out() -> None:
    plan = a_plan(change("f", "", "a\u202eb"), title="To {to.f}")
    assert titles.title(plan) == "To a⟨U+202E⟩b"


def test_it_says_what_was_asked_where_it_differs() -> None:
    plan = a_plan()
    assert titles.asked(plan) == "Asked for 480.00 USD; the target will refund 280.00 USD."


def test_it_is_silent_where_the_wish_comes_true() -> None:
    assert titles.asked(a_plan(change("refunded_cents", 0, 48000))) == ""


def test_it_says_the_wish_alone_where_the_title_names_no_value() -> None:
    assert titles.asked(a_plan(title="Refund on {object}")) == "Asked for 480.00 USD."


@pytest.mark.parametrize("inputs", [{}, {"amount_cents": None}, {"amount_cents": [1]}])
def test_a_wish_that_cannot_be_told_is_left_out(inputs: object) -> None:
    assert titles.asked(a_plan(inputs=inputs)) == ""


def test_nested_inputs_are_reached() -> None:
    plan = a_plan(asked="{inputs.a.b}", inputs={"a": {"b": "x"}}, title="{object}")
    assert titles.asked(plan) == "Asked for x."


@pytest.mark.parametrize(
    ("template", "allow_inputs", "fine"),
    [
        (REFUND, False, True),
        (ASKED, True, True),
        (ASKED, False, False),
        ("{amount}", True, False),
        ("{to.f:money:EURO}", False, False),
        ("{to.f", False, False),
        ("no placeholder", False, True),
    ],
)
def test_templates_are_judged_before_use(template: str, allow_inputs: bool, fine: bool) -> None:
    assert (titles.complaint(template, allow_inputs=allow_inputs) is None) is fine

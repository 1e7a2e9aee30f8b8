"""The digest of what was shown: every part counts, nothing volatile is inside (B-2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from approvals.digest import origin, shown_digest
from plans.models import Operation, Plan, Target
from plans.oversight import Assessment

SHOWN = Assessment("Refund 280.00 USD on invoice/4412", "", "high", "builtin-1", 1, "")


def a_plan() -> Plan:
    target = Target(name="billing", base_url="https://billing.example/api")
    operation = Operation(target=target, name="refund", formats={"refunded_cents": "money:USD"})
    action = {
        "op": "update",
        "target": "invoice/4412",
        "field": "refunded_cents",
        "from": 20000,
        "to": 48000,
    }
    return Plan(
        target=target,
        operation=operation,
        plan_id="plan_b1d07",
        input_fingerprint="sha256:6b1f",
        inputs=b'{"amount_cents":48000,"invoice_id":"4412"}',
        expires_at_text="2026-03-14T09:46:42Z",
        actions=[action],
        verification="verified",
    )


def with_column(name: str, value: object) -> Callable[[Plan], None]:
    return lambda plan: setattr(plan, name, value)


def with_action(**members: object) -> Callable[[Plan], None]:
    return lambda plan: plan.actions[0].update(members)


def test_it_is_a_sha256_in_hex() -> None:
    digest = shown_digest(a_plan(), SHOWN)
    assert len(digest) == 64
    assert set(digest) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    "alter",
    [
        lambda plan: setattr(plan.target, "name", "payouts"),
        lambda plan: setattr(plan.target, "base_url", "https://billing.example.org/api"),
        lambda plan: setattr(plan.target, "base_url", "http://billing.example/api"),
        lambda plan: setattr(plan.operation, "name", "refund2"),
        lambda plan: setattr(plan.operation, "formats", {"refunded_cents": "money:EUR"}),
        with_column("plan_id", "plan_b1d08"),
        with_column("input_fingerprint", "sha256:6b1e"),
        with_column("inputs", b'{"amount_cents":48000, "invoice_id":"4412"}'),
        with_column("expires_at_text", "2026-03-14T09:46:42.000Z"),
        with_column("verification", "unavailable"),
        with_action(to=48001),
        with_action(to="48000"),
        with_action(field="status"),
        with_action(extra=True),
        lambda plan: plan.actions.append(plan.actions[0]),
    ],
)
def test_every_part_of_the_plan_counts(alter: Callable[[Plan], None]) -> None:
    plan = a_plan()
    alter(plan)
    assert shown_digest(plan, SHOWN) != shown_digest(a_plan(), SHOWN)


@pytest.mark.parametrize(
    "part",
    [{"title": "x"}, {"risk": "low"}, {"policy_version": "2"}, {"approvals_required": 2}],
)
def test_every_part_of_the_assessment_counts(part: dict[str, object]) -> None:
    assert shown_digest(a_plan(), replace(SHOWN, **part)) != shown_digest(a_plan(), SHOWN)  # type: ignore[arg-type]


def test_nfc_and_nfd_of_one_name_are_not_the_same() -> None:
    composed, decomposed = a_plan(), a_plan()
    composed.actions[0]["to"], decomposed.actions[0]["to"] = "caf\u00e9", "cafe\u0301"
    assert shown_digest(composed, SHOWN) != shown_digest(decomposed, SHOWN)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "approved"),
        ("round", 2),
        ("approvals_given", 1),
        ("reason", "late words"),
        ("summary", "late words"),
        ("attempts_made", 3),
        ("revision", 7),
    ],
)
def test_nothing_volatile_is_inside(name: str, value: object) -> None:
    plan = a_plan()
    setattr(plan, name, value)
    assert shown_digest(plan, SHOWN) == shown_digest(a_plan(), SHOWN)


def test_a_number_that_jsonb_returns_as_a_long_integer_keeps_its_digest() -> None:
    sent, stored = a_plan(), a_plan()
    sent.actions[0]["to"], stored.actions[0]["to"] = 1e21, 10**21
    assert shown_digest(sent, SHOWN) == shown_digest(stored, SHOWN)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://Billing.example/api", "https://billing.example:443"),
        ("http://127.0.0.1:8001", "http://127.0.0.1:8001"),
        ("https://\u0430pple.com/", "https://xn--pple-43d.com:443"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, expected: str) -> None:
    assert origin(url) == expected

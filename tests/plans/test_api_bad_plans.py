"""The same table for the plan inside a submission: what a target handed out (BI)."""

from __future__ import annotations

from typing import Any

import pytest

from plans.models import Operation, Plan
from tests.plans.api_calls import (
    BIDI,
    LOOKALIKE,
    TOKEN,
    Api,
    action,
    dry_run,
    in_seconds,
    refused,
    submission,
    without,
)

pytestmark = pytest.mark.django_db

FULL_WIDTH = "\uff12\uff10\uff12\uff16-03-14T09:41:12Z"


@pytest.fixture
def api(api_key: str, refund: Operation) -> Api:
    return Api(api_key)


@pytest.mark.parametrize(
    ("members", "code", "pointer"),
    [
        ({"expires_at": "2026-03-14T09:41:12"}, "offset-required", "expires_at"),  # BI-19
        ({"expires_at": in_seconds(600)[:-1] + "+15:00"}, "invalid-timestamp", "expires_at"),
        ({"expires_at": in_seconds(600)[:-1] + "+24:00"}, "invalid-timestamp", "expires_at"),
        ({"expires_at": in_seconds(600)[:-1] + "-00:00"}, "invalid-timestamp", "expires_at"),
        ({"expires_at": in_seconds(600)[:-1] + "+0530"}, "invalid-timestamp", "expires_at"),
        ({"expires_at": "2026-06-30T23:59:60Z"}, "invalid-timestamp", "expires_at"),  # BI-22
        ({"expires_at": "2026-06-30T24:00:00Z"}, "invalid-timestamp", "expires_at"),
        ({"expires_at": "2026-03-14"}, "invalid-timestamp", "expires_at"),  # BI-23
        ({"expires_at": "2026-W11-6T09:41:12Z"}, "invalid-timestamp", "expires_at"),
        ({"expires_at": "20260314T094112Z"}, "invalid-timestamp", "expires_at"),
        ({"expires_at": "2026-03-14 09:41:12Z"}, "invalid-timestamp", "expires_at"),
        ({"expires_at": "2026-03-14t09:41:12z"}, "invalid-timestamp", "expires_at"),
        ({"expires_at": 1_773_480_000}, "invalid-timestamp", "expires_at"),
        ({"expires_at": FULL_WIDTH}, "invalid-timestamp", "expires_at"),
        ({"expires_at": "2020-03-14T09:41:12Z"}, "already-expired", "expires_at"),  # BI-24
        ({"expires_at": lambda: in_seconds(30)}, "window-too-short", "expires_at"),
        ({"expires_at": in_seconds(90_000)}, "window-too-long", "expires_at"),
        ({"expires_at": "9999-12-31T23:59:59-12:00"}, "window-too-long", "expires_at"),  # BI-25
        ({"expires_at": "0001-01-01T00:00:00+14:00"}, "already-expired", "expires_at"),
        ({"expires_at": "infinity"}, "invalid-timestamp", "expires_at"),
        ({"expires_at": in_seconds(600)[:-1] + ".1234567Z"}, "invalid-timestamp", "expires_at"),
        ({"expires_at": None}, "invalid-timestamp", "expires_at"),
        ({"created_at": "yesterday"}, "invalid-timestamp", "created_at"),
        ({"plan_token": None}, "missing-field", "plan_token"),  # BI-27
        ({"plan_token": ""}, "invalid-field", "plan_token"),
        ({"plan_token": "a" * 16_385}, "string-too-long", "plan_token"),
        ({"plan_token": "to\r\nken"}, "invalid-field", "plan_token"),
        ({"plan_token": 7}, "invalid-field", "plan_token"),
        ({"input_fingerprint": None}, "invalid-field", "input_fingerprint"),  # BI-28
        ({"input_fingerprint": ""}, "invalid-field", "input_fingerprint"),
        ({"input_fingerprint": "f" * 257}, "invalid-field", "input_fingerprint"),
        ({"input_fingerprint": "füß"}, "invalid-field", "input_fingerprint"),
        ({"plan_id": "a/b"}, "invalid-plan-id", "plan_id"),  # BI-29
        ({"plan_id": ".."}, "invalid-plan-id", "plan_id"),
        ({"plan_id": "."}, "invalid-plan-id", "plan_id"),
        ({"plan_id": "%2f"}, "invalid-plan-id", "plan_id"),
        ({"plan_id": "a b"}, "invalid-plan-id", "plan_id"),
        ({"plan_id": "p" * 300}, "invalid-plan-id", "plan_id"),
        ({"plan_id": "😀"}, "invalid-plan-id", "plan_id"),
        ({"plan_id": LOOKALIKE}, "invalid-plan-id", "plan_id"),
        ({"plan_id": "pl_1\n"}, "invalid-plan-id", "plan_id"),
        ({"plan_id": None}, "invalid-plan-id", "plan_id"),
        ({"actions": None}, "missing-field", "actions"),
        ({"actions": []}, "no-actions", "actions"),  # BI-38
        ({"actions": [action(to=n) for n in range(21)]}, "too-many-actions", "actions"),
        ({"actions": [action(), action()]}, "duplicate-action", "actions/1"),
        ({"actions": ["x"]}, "invalid-field", "actions/0"),
        ({"actions": [without(action(), "to")]}, "missing-field", "actions/0/to"),
        ({"actions": [action(op="delete")]}, "action-not-allowed", "actions/0/op"),  # BI-39
        ({"actions": [action(field="owner")]}, "action-not-allowed", "actions/0/field"),
        ({"actions": [action(field=LOOKALIKE)]}, "invalid-field", "actions/0/field"),  # BI-33
        ({"actions": [action(target=f"inv{BIDI}")]}, "invalid-field", "actions/0/target"),  # BI-32
        ({"actions": [action(target="")]}, "invalid-field", "actions/0/target"),
        ({"actions": [action(target=4412)]}, "invalid-field", "actions/0/target"),
        ({"covers": "invoice/4412"}, "invalid-field", "covers"),
        ({"note": TOKEN}, "token-elsewhere", "note"),
    ],
)
def test_the_plan_is_wrong(api: Api, members: dict[str, Any], code: str, pointer: str) -> None:
    now = {name: value() if callable(value) else value for name, value in members.items()}
    body = submission(plan=dry_run(**now))
    refused(api.post("/plans", body), 422, code, f"/plan/{pointer}")


def test_a_token_without_a_plan_id_is_refused(api: Api) -> None:  # BI-27
    body = submission(plan=without(dry_run(), "plan_id"))
    refused(api.post("/plans", body), 422, "invalid-plan-id", "/plan/plan_id")


@pytest.mark.parametrize(
    "members",
    [
        {"expires_at": "+14:00"},  # BI-20
        {"input_fingerprint": "SHA512:ABC/def+1=="},
        {"actions": [action(to=f"a{BIDI}b\u200b\u3164<script>{{{{7*7}}}}\x1b[31m\r\n\t")]},  # BI-35
        {"actions": [action(to="e\u0301"), action(to="é")]},  # BI-34
        {"actions": [action(to=0)]},
    ],
)
def test_odd_but_honest_values_are_taken(api: Api, members: dict[str, Any]) -> None:
    if members.get("expires_at") == "+14:00":
        # The same instant on the clock of a place fourteen hours ahead.
        members = {"expires_at": in_seconds(600 + 14 * 3600)[:-1] + "+14:00"}
    assert api.post("/plans", submission(plan=dry_run(**members))).status_code == 201
    stored = Plan.objects.get()
    if "actions" in members:
        assert stored.actions == members["actions"]

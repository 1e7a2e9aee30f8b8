"""The read-back against the submission, member by member (T-2)."""

from __future__ import annotations

import pytest

from plans.models import Plan
from plans.timestamps import parse_instant
from plans.verification import compare
from tests.plans.planning_target import Body, dry_run
from tests.plans.story import INPUTS, INPUTS_VALUE


@pytest.mark.parametrize(
    ("told", "pointer"),
    [
        ({"plan_id": "plan_other"}, "/plan_id"),
        ({"plan_id": None}, "/plan_id"),
        ({"input_fingerprint": "sha256:00"}, "/input_fingerprint"),
        ({"actions": []}, "/actions"),
        ({"actions": "none"}, "/actions"),
        ({"expires_at": "2031-01-01T00:00:00Z"}, "/expires_at"),
        ({"expires_at": "soon"}, "/expires_at"),
        ({"inputs": {"amount_cents": 4800, "invoice_id": "4412"}}, "/inputs"),
        ({"inputs": '{"amount_cents":48000'}, "/inputs"),
        ({"inputs": None}, "/inputs"),
        ({"status": "applied"}, "/status"),
        ({"status": "in_progress"}, "/status"),
        ({"status": "not_applied"}, "/status"),
        ({"status": None}, "/status"),
    ],
)
def test_any_difference_is_found(told: Body, pointer: str) -> None:
    dry = dry_run()
    names = ("plan_id", "input_fingerprint", "actions")
    plan = Plan(**{name: dry[name] for name in names}, expires_at_text=dry["expires_at"])
    plan.expires_at = parse_instant(dry["expires_at"], "")
    plan.inputs = INPUTS
    whole = {**dry, "inputs": INPUTS_VALUE, "status": "open"}
    assert compare(plan, whole) == []
    (difference,) = compare(plan, whole | told)
    assert (difference["pointer"], difference["read_back"]) == (pointer, told[pointer[1:]])

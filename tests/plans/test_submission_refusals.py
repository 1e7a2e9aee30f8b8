"""Whatever is refused leaves no row, and a token has one place (A-17, A-18)."""

from __future__ import annotations

from typing import Any

import pytest

from plans.models import Agent
from plans.submission import EvidenceItem
from tests.plans.planning_target import Body, dry_run, in_seconds
from tests.plans.story import INPUTS_VALUE, refused, submission, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("refund")]


@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        ({"target": "nowhere"}, "unknown-target", "/target"),
        ({"operation": "delete"}, "unknown-operation", "/operation"),
        ({"replaces": "plan_unknown"}, "unknown-predecessor", "/replaces"),
        ({"replan_id": 4412}, "unknown-replan", "/replan_id"),
        ({"inputs_value": {"amount_cents": "48000"}}, "inputs-invalid", "/inputs"),
    ],
)
def test_a_refused_submission_leaves_no_row(
    change: dict[str, Any], code: str, pointer: str, support_agent: Agent
) -> None:
    refusal = refused(support_agent, submission(**change))
    assert (refusal.status, refusal.code) == (422, code)
    assert pointer in [error.pointer for error in refusal.errors]


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"plan_id": "a/b"}, "invalid-plan-id"),
        ({"plan_token": None}, "missing-field"),
        ({"actions": []}, "no-actions"),
        ({"expires_at": -10}, "already-expired"),
        ({"expires_at": 30}, "window-too-short"),
        ({"expires_at": "9999-12-31T23:59:59-12:00"}, "window-too-long"),
    ],
)
def test_a_refused_dry_run_leaves_no_row(members: Body, code: str, support_agent: Agent) -> None:
    if isinstance(members.get("expires_at"), int):
        members = {"expires_at": in_seconds(members["expires_at"])}
    refusal = refused(support_agent, submission(dry_run(**members)))
    assert (refusal.status, refusal.code) == (422, code)


TOKEN = 'ptok_"/\\_recognise_me'


@pytest.mark.parametrize(
    ("where", "pointer"),
    [
        ({"summary": f"use {TOKEN} now"}, "/summary"),
        ({"reason": TOKEN}, "/reason"),
        ({"task_id": TOKEN}, "/task_id"),
        ({"idempotency_key": TOKEN}, "/idempotency_key"),
        ({"replaces": TOKEN}, "/replaces"),
        ({"evidence": [EvidenceItem("a", "b"), EvidenceItem(TOKEN)]}, "/evidence/1/0"),
        ({"evidence": [EvidenceItem("a", f"[{TOKEN}]")]}, "/evidence/0/1"),
        ({"evidence": [EvidenceItem("a", url=f"https://x/{TOKEN}")]}, "/evidence/0/2"),
        ({"inputs": b'{"note":"ptok_\\"\\/\\\\_recognise_me"}'}, "/inputs"),
        ({"inputs": b'{"note":"\\u0070tok_\\u0022\\/\\u005c_recognise_me"}'}, "/inputs"),
        ({"plan": {"plan_id": TOKEN}}, "/plan/plan_id"),
        ({"plan": {"input_fingerprint": TOKEN}}, "/plan/input_fingerprint"),
        ({"plan": {"links": [{"commit": f"/c?t={TOKEN}"}]}}, "/plan/links/0/commit"),
        ({"plan": {"links": {TOKEN: 1}}}, "/plan/links"),
        ({"plan": {"covers": [TOKEN]}}, "/plan/covers/0"),
    ],
)
def test_the_token_in_any_other_place_is_refused(
    where: dict[str, Any], pointer: str, support_agent: Agent
) -> None:
    dry = dry_run(**{"plan_token": TOKEN} | where.pop("plan", {}))
    refusal = refused(support_agent, submission(dry, inputs_value=INPUTS_VALUE, **where))
    known = {"/plan/plan_id": "invalid-plan-id", "/plan/covers/0": "token-elsewhere"}
    assert refusal.status == 422
    assert refusal.code in (known.get(pointer), "token-elsewhere")
    assert TOKEN not in str(refusal.body(type_base="", instance="", server_time=""))
    if refusal.code == "token-elsewhere":
        assert refusal.errors[0].pointer == pointer


def test_a_short_token_may_occur_by_chance(support_agent: Agent) -> None:
    submitted(support_agent, dry_run(plan_token="refund"), summary="a refund")

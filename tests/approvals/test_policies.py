"""What policies demand of a plan, and what they read of it (B-6, B-7, B-10)."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group

from approvals import oversight
from approvals.models import Policy
from approvals.policies.demands import NO_POLICY, Demands
from approvals.policies.facts import of_plan
from approvals.policies.judging import judge
from plans.models import Operation
from tests.approvals.demanding import LARGE, policy
from tests.approvals.paper_plans import MakePlan

pytestmark = pytest.mark.django_db


def test_without_a_policy_one_reviewer_decides(make_plan: MakePlan) -> None:
    plan = make_plan()
    assert (plan.policy_version, plan.approvals_required, plan.demands) == (NO_POLICY, 1, {})


def test_all_that_match_add_up(make_plan: MakePlan, leads: Group) -> None:
    policy("a", require={"reviewers": 2})
    policy("b", require={"reviewers": 1, "leads": 1}, note_required=True, dwell_seconds=3)
    policy("c", step_up=True, dwell_seconds=10)
    policy("another operation", 'operation == "other"', require={"reviewers": 9}, deny=True)
    policy("switched off", "true", deny=True, active=False)
    plan = make_plan()
    demands = Demands.of(plan)
    assert demands.groups == {"leads": 1, "reviewers": 2}
    assert (demands.note, demands.step_up, demands.dwell_seconds) == (True, True, 10)
    assert (demands.policies, demands.denied_by) == (("a", "b", "c"), ())
    assert plan.approvals_required == 3


def test_a_policy_without_people_still_needs_one(make_plan: MakePlan) -> None:
    policy("notes", note_required=True)
    plan = make_plan()
    assert (plan.approvals_required, Demands.of(plan).seats) == (1, ("",))


def test_every_content_is_another_version_and_digest(make_plan: MakePlan) -> None:
    plan = make_plan()
    seen = {(plan.policy_version, plan.digest)}
    row = policy("large", require={"reviewers": 1})
    for change in (
        {},
        {"require": [{"group": "reviewers", "count": 2}]},
        {"note_required": True},
        {"dwell_seconds": 3},
        {"when": "true"},
        {"raise_risk": "critical"},
    ):
        Policy.objects.filter(pk=row.pk).update(**change)
        now = oversight.ReviewOversight().assess(plan)
        assert now.digest not in {digest for _, digest in seen}
        seen.add((now.policy_version, now.digest))
    assert len({version for version, _ in seen}) == 7
    assert oversight.ReviewOversight().assess(plan).digest == now.digest


def test_a_policy_raises_the_risk_and_another_reads_it(make_plan: MakePlan) -> None:
    policy("a", 'risk == "critical"', require={"reviewers": 2}, step_up=True)
    policy("z", LARGE, raise_risk="critical")
    policy("lower", "true", raise_risk="low")
    plan = make_plan()
    assert (plan.risk, plan.risk_rank, plan.approvals_required) == ("critical", 0, 2)


def test_an_unclear_policy_counts_as_critical_and_is_named(make_plan: MakePlan) -> None:
    """B-7, SEC-28: no answer is never a no."""
    policy("broken", "delta.fee_cents > 0", require={"reviewers": 2})
    plan = make_plan()
    assert (plan.risk, plan.approvals_required) == ("critical", 2)
    assert Demands.of(plan).unclear[0][0] == "broken"


def _update(target: str, field: str, was: Any, will: Any) -> dict[str, Any]:
    return {"op": "update", "target": target, "field": field, "from": was, "to": will}


def test_it_reads_what_the_target_told(make_plan: MakePlan) -> None:
    actions = [
        _update("invoice/1", "refunded_cents", 100, 350),
        _update("invoice/1", "rate", 1.5, 2),
        _update("invoice/1", "status", "paid", "refunded"),
        _update("invoice/1", "huge", 0, 10**30),
    ]
    (facts,) = of_plan(make_plan(actions=actions, inputs={"n": 10**30}, inputs_confirmed=True))
    assert facts["from"] == {"refunded_cents": 100, "rate": 1.5, "status": "paid", "huge": 0}
    assert facts["delta"] == {"refunded_cents": 250, "rate": 0.5, "huge": 1e30}
    assert (facts["objects"], facts["inputs"]) == (["invoice/1"], {"n": 1e30})
    assert (facts["target"], facts["agent"]) == ("billing", "support-agent")


@pytest.mark.parametrize(
    ("amounts", "matched"),
    [
        ([("a", 10), ("b", 48000)], True),
        ([("a", 48000), ("b", 10)], True),
        ([("a", 47999), ("b", 47999)], False),
        ([("a", 48000), ("b", -48000)], True),
        ([("a", 10), ("a", 48000), ("a", 20)], True),
    ],
)
def test_no_action_hides_behind_another(
    make_plan: MakePlan, amounts: list[tuple[str, int]], matched: bool
) -> None:
    policy("large", require={"reviewers": 2})
    actions = [_update(name, "refunded_cents", 0, amount) for name, amount in amounts]
    plan = make_plan(actions=actions)
    assert (plan.approvals_required == 2, plan.risk) == (matched, "high")


def test_an_object_without_the_field_leaves_nothing_unclear(make_plan: MakePlan) -> None:
    policy("large", require={"reviewers": 2})
    actions = [
        _update("invoice/1", "refunded_cents", 0, 10),
        _update("invoice/2", "refunded_cents", 0, 20),
        _update("customer/7", "tier", "gold", "none"),
    ]
    plan = make_plan(actions=actions)
    assert (plan.approvals_required, plan.risk, plan.demands) == (1, "high", {})


def test_fields_of_different_objects_are_read_together(make_plan: MakePlan) -> None:
    actions = [
        _update("invoice/1", "refunded_cents", 0, 48000),
        _update("customer/7", "tier", "gold", "none"),
    ]
    policy("both", f'{LARGE} && to.tier == "none"', require={"reviewers": 2})
    assert make_plan(actions=actions).approvals_required == 2


@pytest.mark.parametrize("confirmed", [True, False])
def test_inputs_that_the_target_does_not_return_match(make_plan: MakePlan, confirmed: bool) -> None:
    """T-2."""
    policy("wishes", "inputs.amount_cents > 1000000", require={"reviewers": 2})
    policy("elsewhere", 'target == "crm" && inputs.x > 1', deny=True)
    plan = make_plan(inputs_confirmed=confirmed)
    demands = Demands.of(plan)
    assert plan.approvals_required == (1 if confirmed else 2)
    assert demands.withheld == (() if confirmed else (("wishes", "inputs"),))
    assert (demands.unclear, demands.denied_by, plan.risk) == ((), (), "high")


@pytest.mark.parametrize("when", [LARGE, "objects.size() > 9", "actions.size() > 9"])
def test_an_unverified_plan_tells_nothing_but_names(make_plan: MakePlan, when: str) -> None:
    """B-10: policies use read-back values, never the agent's own."""
    policy("large", when, require={"reviewers": 2})
    plan = make_plan(verification="unavailable", inputs_confirmed=True)
    assert (plan.approvals_required, plan.risk) == (2, "high")
    assert judge(plan).demands.withheld[0][0] == "large"


def test_a_raised_risk_of_the_operation_is_read_afresh(
    make_plan: MakePlan, refund: Operation
) -> None:
    policy("critical", 'risk == "critical"', require={"reviewers": 2}, step_up=True)
    assert make_plan().approvals_required == 1
    refund.risk = "critical"
    refund.save()
    assert (plan := make_plan()).approvals_required == 2
    assert Demands.of(plan).step_up

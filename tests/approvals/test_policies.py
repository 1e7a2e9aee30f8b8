"""What policies demand of a plan, and what a decision has to satisfy (B-6, B-7, B-10, B-11)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from approvals import oversight
from approvals.decisions import Ballot, decide, withdraw
from approvals.models import Decision, Policy
from approvals.policies.demands import NO_POLICY, Demands
from approvals.policies.facts import of_plan
from approvals.policies.judging import judge
from audit.models import Event
from plans import errors
from plans.clock import clock
from plans.models import Operation, Plan, Target
from plans.problem import Problem
from plans.status import Status

pytestmark = pytest.mark.django_db
type Make = Callable[..., Plan]
LARGE = 'operation == "refund" && delta.refunded_cents >= 48000'


def policy(name: str, when: str = LARGE, **columns: Any) -> Policy:
    require = [{"group": group, "count": n} for group, n in columns.pop("require", {}).items()]
    return Policy.objects.create(name=name, when=when, require=require, **columns)


def approve(person: User, plan: Plan, note: str = "", **columns: Any) -> Plan:
    return decide(person, plan.pk, Ballot("approve", note, plan.digest, **columns))


def refused(problem: type[Problem], person: User, plan: Plan, **columns: Any) -> Problem:
    with pytest.raises(problem) as refusal:
        approve(person, plan, **columns)
    assert Event.objects.filter(action="decision.refused").latest("id").details == {
        "verdict": "approve",
        "code": problem.code,
    }
    return refusal.value


@pytest.fixture
def leads(billing: Target, grace: User) -> Group:
    """Grace's second group."""
    return Group.objects.get(name="leads")


# ── Adding up ───────────────────────────────────────────────────────────────────────────────


def test_without_a_policy_one_reviewer_decides(make_plan: Make) -> None:
    plan = make_plan()
    assert (plan.policy_version, plan.approvals_required, plan.demands) == (NO_POLICY, 1, {})


def test_all_that_match_add_up(make_plan: Make, leads: Group) -> None:
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


def test_a_policy_without_people_still_needs_one(make_plan: Make) -> None:
    policy("notes", note_required=True)
    plan = make_plan()
    assert (plan.approvals_required, Demands.of(plan).seats) == (1, ("",))


def test_every_content_is_another_version_and_digest(make_plan: Make) -> None:
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


def test_a_policy_raises_the_risk_and_another_reads_it(make_plan: Make) -> None:
    policy("a", 'risk == "critical"', require={"reviewers": 2}, step_up=True)
    policy("z", LARGE, raise_risk="critical")
    policy("lower", "true", raise_risk="low")
    plan = make_plan()
    assert (plan.risk, plan.risk_rank, plan.approvals_required) == ("critical", 0, 2)


def test_an_unclear_policy_counts_as_critical_and_is_named(make_plan: Make) -> None:
    """B-7, SEC-28: no answer is never a no."""
    policy("broken", "delta.fee_cents > 0", require={"reviewers": 2})
    plan = make_plan()
    assert (plan.risk, plan.approvals_required) == ("critical", 2)
    assert Demands.of(plan).unclear[0][0] == "broken"


# ── Facts ───────────────────────────────────────────────────────────────────────────────────


def _update(target: str, field: str, was: Any, will: Any) -> dict[str, Any]:
    return {"op": "update", "target": target, "field": field, "from": was, "to": will}


def test_it_reads_what_the_target_told(make_plan: Make) -> None:
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
    make_plan: Make, amounts: list[tuple[str, int]], matched: bool
) -> None:
    policy("large", require={"reviewers": 2})
    actions = [_update(name, "refunded_cents", 0, amount) for name, amount in amounts]
    plan = make_plan(actions=actions)
    assert (plan.approvals_required == 2, plan.risk) == (matched, "high")


def test_an_object_without_the_field_leaves_nothing_unclear(make_plan: Make) -> None:
    policy("large", require={"reviewers": 2})
    actions = [
        _update("invoice/1", "refunded_cents", 0, 10),
        _update("invoice/2", "refunded_cents", 0, 20),
        _update("customer/7", "tier", "gold", "none"),
    ]
    plan = make_plan(actions=actions)
    assert (plan.approvals_required, plan.risk, plan.demands) == (1, "high", {})


def test_fields_of_different_objects_are_read_together(make_plan: Make) -> None:
    actions = [
        _update("invoice/1", "refunded_cents", 0, 48000),
        _update("customer/7", "tier", "gold", "none"),
    ]
    policy("both", f'{LARGE} && to.tier == "none"', require={"reviewers": 2})
    assert make_plan(actions=actions).approvals_required == 2


@pytest.mark.parametrize("confirmed", [True, False])
def test_inputs_that_the_target_does_not_return_match(make_plan: Make, confirmed: bool) -> None:
    """T-2."""
    policy("wishes", "inputs.amount_cents > 1000000", require={"reviewers": 2})
    policy("elsewhere", 'target == "crm" && inputs.x > 1', deny=True)
    plan = make_plan(inputs_confirmed=confirmed)
    demands = Demands.of(plan)
    assert plan.approvals_required == (1 if confirmed else 2)
    assert demands.withheld == (() if confirmed else (("wishes", "inputs"),))
    assert (demands.unclear, demands.denied_by, plan.risk) == ((), (), "high")


@pytest.mark.parametrize("when", [LARGE, "objects.size() > 9", "actions.size() > 9"])
def test_an_unverified_plan_tells_nothing_but_names(make_plan: Make, when: str) -> None:
    """B-10: policies use read-back values, never the agent's own."""
    policy("large", when, require={"reviewers": 2})
    plan = make_plan(verification="unavailable", inputs_confirmed=True)
    assert (plan.approvals_required, plan.risk) == (2, "high")
    assert judge(plan).demands.withheld[0][0] == "large"


# ── Deciding ────────────────────────────────────────────────────────────────────────────────


def test_two_distinct_people(make_plan: Make, ada: User, grace: User) -> None:
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    first = approve(ada, plan)
    assert (first.status, first.approvals_given, first.next_attempt_at) == ("pending", 1, None)
    assert (approve(ada, plan).approvals_given, Decision.objects.count()) == (1, 1)
    assert approve(grace, plan).status == Status.APPROVED
    assert Plan.objects.get().approvals_given == 2


def test_a_person_in_two_groups_counts_once(
    make_plan: Make, ada: User, grace: User, leads: Group
) -> None:
    policy("large", require={"reviewers": 1, "leads": 1})
    plan = make_plan()
    assert approve(grace, plan).status == Status.PENDING
    assert approve(ada, plan).status == Status.APPROVED


def test_an_approval_that_would_not_count_is_refused(
    make_plan: Make, ada: User, grace: User, leads: Group
) -> None:
    policy("leads decide", require={"leads": 1})
    plan = make_plan()
    told = refused(errors.NotAllowed, ada, plan)
    assert "it needs somebody of leads" in told.detail
    assert approve(grace, plan).status == Status.APPROVED


def test_whoever_cannot_approve_can_still_say_no(make_plan: Make, ada: User, leads: Group) -> None:
    policy("leads decide", require={"leads": 1})
    plan = make_plan()
    assert decide(ada, plan.pk, Ballot("reject", "no", plan.digest)).status == Status.REJECTED


def test_the_agents_owner_never_counts(make_plan: Make, dana: User, ada: User) -> None:
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    refused(errors.NotAllowed, dana, plan)
    assert approve(ada, plan).status == Status.PENDING


def test_an_approver_who_left_makes_room(
    make_plan: Make, ada: User, grace: User, otto: User
) -> None:
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    otto.groups.add(Group.objects.get(name="reviewers"))
    approve(ada, plan)
    ada.groups.clear()
    assert (approve(grace, plan).status, Plan.objects.get().approvals_given) == ("pending", 1)
    assert approve(otto, plan).status == Status.APPROVED


def test_who_comes_back_does_not_block_the_rest(
    make_plan: Make, ada: User, grace: User, otto: User
) -> None:
    """Complete without a last click: the next reviewer's approval is what sends it."""
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    reviewers = Group.objects.get(name="reviewers")
    otto.groups.add(reviewers)
    approve(ada, plan)
    ada.groups.clear()
    approve(grace, plan)
    ada.groups.add(reviewers)
    assert approve(otto, plan).status == Status.APPROVED


def test_a_note_where_a_policy_asks_for_one(make_plan: Make, ada: User) -> None:
    policy("notes", note_required=True)
    plan = make_plan()
    assert refused(errors.NoteRequired, ada, plan, note=" ").errors[0].pointer == "/note"
    assert approve(ada, plan, "checked with the customer").status == Status.APPROVED


def test_a_sign_in_where_a_policy_asks_for_one(make_plan: Make, ada: User) -> None:
    policy("step up", step_up=True)
    plan = make_plan()
    refused(errors.StepUpRequired, ada, plan)
    assert approve(ada, plan, stepped_up=True).status == Status.APPROVED
    assert Decision.objects.get().stepped_up


@pytest.mark.parametrize("looked", [None, timedelta(seconds=-30), timedelta(seconds=3)])
def test_a_longer_look_where_a_policy_asks_for_one(
    make_plan: Make, ada: User, looked: timedelta | None
) -> None:
    policy("dwell", dwell_seconds=10)
    plan = make_plan()
    refused(errors.DecidedTooSoon, ada, plan, shown_at=looked and clock() - looked)
    assert approve(ada, plan, shown_at=clock() - timedelta(seconds=11)).status == "approved"


def test_saying_no_is_asked_for_nothing_of_it(make_plan: Make, ada: User) -> None:
    policy("all of it", note_required=True, step_up=True, dwell_seconds=60, deny=True)
    plan = make_plan()
    assert decide(ada, plan.pk, Ballot("reject", "no", plan.digest)).status == Status.REJECTED


def test_a_denied_plan_waits_and_nobody_can_approve_it(make_plan: Make, ada: User) -> None:
    """B-7: the target's own values may deny what the agent's words did not."""
    policy("never so much", deny=True)
    plan = make_plan()
    told = refused(errors.PolicyDenied, ada, plan)
    assert told.detail == 'The policy "never so much" does not allow such a plan.'
    assert Plan.objects.get().status == Status.PENDING


# ── Changes between looking and deciding ────────────────────────────────────────────────────


def test_a_policy_edited_while_it_waits_starts_a_new_round(
    make_plan: Make, ada: User, grace: User
) -> None:
    """B-11: what was approved under other demands is asked again."""
    row = policy("large", require={"reviewers": 2})
    plan = make_plan()
    approve(ada, plan)
    Policy.objects.filter(pk=row.pk).update(note_required=True)
    now = oversight.current(Plan.objects.with_names().get())
    assert (now.round, now.approvals_given, now.digest != plan.digest) == (2, 0, True)
    event = Event.objects.get(action="plan.reassessed")
    assert (event.details["voided_approvals"], event.actor_kind) == (1, "system")
    refused(errors.DigestMismatch, grace, plan)
    assert approve(ada, now, "yes").approvals_given == 1
    assert approve(grace, now, "yes").status == Status.APPROVED


def test_nothing_changes_while_the_world_stands_still(make_plan: Make, ada: User) -> None:
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    approve(ada, plan)
    assert oversight.current(Plan.objects.with_names().get()).round == 1
    assert not Event.objects.filter(action="plan.reassessed").exists()


# ── Taking an approval back before the quorum ───────────────────────────────────────────────


def test_an_approver_takes_it_back_and_may_decide_again(
    make_plan: Make, ada: User, grace: User
) -> None:
    """B-9: the plan goes on waiting, and the row stays as history."""
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    approve(ada, plan)
    after = withdraw(ada, plan.pk, "wrong customer")
    assert (after.status, after.approvals_given, after.round) == ("pending", 0, 1)
    event = Event.objects.get(action="decision.withdrawn")
    assert (event.actor_label, event.details) == ("ada", {"note": "wrong customer", "round": 1})
    assert (Decision.objects.count(), Decision.with_withdrawn.count()) == (0, 1)
    assert approve(grace, plan).status == Status.PENDING
    assert approve(ada, plan).status == Status.APPROVED
    assert Decision.with_withdrawn.filter(person=ada).count() == 2


def test_only_ones_own_and_only_in_time(make_plan: Make, ada: User, grace: User) -> None:
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    approve(ada, plan)
    with pytest.raises(errors.NotAllowed):
        withdraw(grace, plan.pk, "no")
    with pytest.raises(errors.NoteRequired):
        withdraw(ada, plan.pk, " ")
    Plan.objects.update(decide_by=clock())
    with pytest.raises(errors.PlanExpired):
        withdraw(ada, plan.pk, "no")
    assert Decision.objects.count() == 1


def test_a_raised_risk_of_the_operation_is_read_afresh(make_plan: Make, refund: Operation) -> None:
    policy("critical", 'risk == "critical"', require={"reviewers": 2}, step_up=True)
    assert make_plan().approvals_required == 1
    refund.risk = "critical"
    refund.save()
    assert (plan := make_plan()).approvals_required == 2
    assert Demands.of(plan).step_up

"""Verification at intake: what people see is what the target told, or nothing is (T-2)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from approvals.oversight import ReviewOversight
from audit.models import Event
from plans import verification
from plans.models import Agent, Operation, Plan, Replan, Target, Write
from plans.status import Status
from plans.submission import submit
from plans.sweeper import due_work
from plans.verification import verify
from tests.plans.planning_target import Body, PlanningTarget, Reply, Seen, dry_run
from tests.plans.story import fresh, pending, read_again, read_back, submission, submitted

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("refund")]
INPUTS = {"amount_cents": 48000, "invoice_id": "4412"}


def test_a_plan_that_matches_waits_for_people(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    plan = read_back(support_agent, planning)
    assert (plan.status, plan.verification) == (Status.PENDING, "verified")
    assert (plan.verify_at, plan.title) == (None, "Refund 480.00 USD on invoice/4412")
    assert plan.verified_at is not None
    assert len(plan.digest) == 64
    assert [e.action for e in Event.objects.order_by("id")] == ["plan.submitted", "plan.verified"]
    assert planning.seen[0].path == f"/plans/{plan.plan_id}"
    assert planning.seen[0].headers["authorization"] == "Bearer billing-token-of-the-tests"


def test_a_difference_closes_the_plan(support_agent: Agent, planning: PlanningTarget) -> None:
    plan = read_back(support_agent, planning, status="applied")
    assert (plan.status, plan.token, plan.commit_body) == (Status.MISMATCHED, None, None)
    assert plan.mismatches == [{"pointer": "/status", "submitted": "open", "read_back": "applied"}]
    event = Event.objects.get(action="plan.mismatched")
    assert (event.actor_kind, event.details["differences"]) == ("target", plan.mismatches)
    assert not Replan.objects.exists()


def test_one_action_that_differs_in_one_value_is_a_difference(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    dry = dry_run()
    actions = json.loads(json.dumps(dry["actions"]))
    actions[0]["to"] = 48001
    plan = read_back(support_agent, planning, dry, actions=actions)
    assert plan.mismatches[0]["pointer"] == "/actions"
    assert plan.mismatches[0]["submitted"] == dry["actions"]


def test_the_order_of_actions_is_part_of_them(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    dry = dry_run()
    plan = read_back(support_agent, planning, dry, actions=dry["actions"][::-1])
    assert plan.status == Status.MISMATCHED


def test_every_difference_is_listed(support_agent: Agent, planning: PlanningTarget) -> None:
    plan = read_back(support_agent, planning, plan_id="x", actions=[], inputs={})
    assert [d["pointer"] for d in plan.mismatches] == ["/plan_id", "/actions", "/inputs"]


@pytest.mark.parametrize(
    "told",
    [
        {"inputs": '{ "invoice_id": "4412", "amount_cents": 4.8e4 }'},
        {"extra": 1},
        {"status": "open"},
    ],
)
def test_another_spelling_of_the_same_is_no_difference(
    told: Body, support_agent: Agent, planning: PlanningTarget
) -> None:
    assert read_back(support_agent, planning, **told).status == Status.PENDING


def test_another_spelling_of_the_same_instant_is_no_difference(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    dry = dry_run()
    other = dry["expires_at"].replace("Z", ".000+00:00")
    assert read_back(support_agent, planning, dry, expires_at=other).status == Status.PENDING


def test_a_target_that_returns_no_inputs_or_status_is_believed(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    dry = dry_run()
    plan = submitted(support_agent, dry)
    told = planning.knows(dry)
    del told["inputs"], told["status"]
    verify(plan.pk)
    plan = fresh(plan)
    assert (plan.status, plan.inputs_confirmed) == (Status.PENDING, False)


def test_inputs_that_the_target_returns_are_confirmed(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    """T-2: policies may read them."""
    plan = read_back(support_agent, planning)
    assert (plan.status, plan.inputs_confirmed) == (Status.PENDING, True)


def test_a_plan_that_the_target_does_not_know_is_mismatched(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    plan = submitted(support_agent)
    verify(plan.pk)
    plan = fresh(plan)
    nothing = {"pointer": "", "submitted": plan.plan_id, "read_back": None}
    assert (plan.status, plan.mismatches) == (Status.MISMATCHED, [nothing])


def test_a_plan_that_has_expired_over_there_is_planned_again(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    plan = read_back(support_agent, planning, status="expired")
    assert plan.status == Status.EXPIRED
    assert Event.objects.get(action="plan.expired").actor_kind == "target"
    assert Replan.objects.get().plan_id == plan.pk


def test_the_targets_values_replace_the_submissions(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    dry = dry_run(covers=["invoice/1"], created_at="2026-01-01T00:00:00Z")
    told = {"covers": ["invoice/4412", "customer/7"], "created_at": "2026-02-02T02:02:02Z"}
    plan = read_back(support_agent, planning, dry, **told)
    assert (plan.status, plan.covers) == (Status.PENDING, ["invoice/4412", "customer/7"])
    assert plan.plan_created_at.isoformat() == "2026-02-02T02:02:02+00:00"


def test_a_write_that_the_targets_covers_reveal_makes_the_plan_stale(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    Write.objects.create(
        agent=support_agent, task_id="task-1", objects_written=["customer/7"], tool="crm"
    )
    dry = dry_run(covers=["invoice/4412"], created_at="2026-01-01T00:00:00Z")
    plan = read_back(support_agent, planning, dry, covers=["invoice/4412", "customer/7"])
    assert plan.status == Status.STALE


# ── fail closed ──────────────────────────────────────────────────────────────────────────────


def test_an_oversight_that_breaks_lets_nothing_through(
    support_agent: Agent, planning: PlanningTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry = dry_run()
    plan = submitted(support_agent, dry)
    planning.knows(dry)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a policy divides")

    with monkeypatch.context() as patch:
        patch.setattr(ReviewOversight, "assess", broken)
        with pytest.raises(ZeroDivisionError):
            verify(plan.pk)
        # The next try waits its turn: no sweep spins on it.
        assert plan.pk not in [work.pk for work in due_work()]
    plan = fresh(plan)
    assert (plan.status, plan.verification, plan.digest) == (Status.VERIFYING, "waiting", "")
    assert read_again(plan).status == Status.PENDING


def test_what_was_read_from_an_address_that_is_gone_is_read_again(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    dry = dry_run()
    plan = submitted(support_agent, dry)

    def meanwhile(_: Seen) -> Reply:
        Target.objects.update(connection_version=2)
        return Reply(200, planning.knows(dry))

    planning.script["read"] = meanwhile
    verify(plan.pk)
    assert fresh(plan).status == Status.VERIFYING
    plan = read_again(plan)
    assert (plan.status, plan.connection_version) == (Status.PENDING, 2)


@pytest.mark.parametrize(("allow", "risk"), [(False, "low"), (True, "critical")])
def test_without_a_read_back_the_plan_is_the_agents_description(
    allow: bool, risk: str, support_agent: Agent, planning: PlanningTarget
) -> None:
    Target.objects.update(plan_path="", allow_unverified=allow)
    Operation.objects.update(risk=risk)
    plan, _ = submit(support_agent, submission())
    verify(plan.pk)
    plan = fresh(plan)
    assert (plan.status, plan.verification) == (Status.PENDING, "unavailable")
    assert (plan.verified, plan.verified_at, planning.seen) == (False, None, [])
    assert plan.risk == ("critical" if allow else "high")
    assert Event.objects.filter(action="plan.accepted_unverified").exists()


@pytest.mark.parametrize("secret", ["token", "credential"])
def test_a_secret_that_the_target_repeats_is_masked(
    secret: str, support_agent: Agent, planning: PlanningTarget
) -> None:
    dry = dry_run()
    text = dry["plan_token"] if secret == "token" else "billing-token-of-the-tests"
    told = {"actions": [{"note": f"use {text}", text: 1}], "expires_at": f"<{text}>"}
    plan = read_back(support_agent, planning, dry, **told)
    stored = json.dumps([plan.mismatches, list(Event.objects.values_list("details"))])
    assert plan.status == Status.MISMATCHED
    assert "[token removed]" in stored
    assert text not in stored


@pytest.mark.parametrize("status", [Status.ABANDONED, Status.STALE, Status.EXPIRED])
def test_what_ended_meanwhile_is_left_alone(
    status: Status, make_plan: Callable[..., Plan], planning: PlanningTarget
) -> None:
    plan = make_plan(status)
    verify(plan.pk)
    assert fresh(plan).status == status
    assert planning.seen == []


def test_only_plans_that_are_due_are_found(support_agent: Agent) -> None:
    due, waiting = submitted(support_agent), submitted(support_agent)
    Plan.objects.filter(pk=waiting.pk).update(verify_at=waiting.expires_at)
    pending(support_agent)
    assert list(verification.due(timedelta(0))) == [due.pk]
    assert list(verification.due(timedelta(seconds=30))) == []

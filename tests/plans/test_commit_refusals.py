"""A target that refuses a commit, and when it is believed (FM-13 … FM-20, T-7, T-8)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from audit.models import Event
from plans.models import Plan, Replan, Target
from plans.status import Status
from tests.faults.scripted_target import CHANGED, ScriptedTarget, Step, answer, drop, hang
from tests.plans.engine import TOKEN, actions, given_up, one_key_one_body, read, said, send

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("calls_in_the_tests_transaction")]
type Make = Callable[..., Plan]


@pytest.mark.fm(13)
def test_a_conflict_names_what_moved_and_is_planned_again(
    approved: Make, target: ScriptedTarget
) -> None:
    """FM-13: one re-plan, no retry."""
    created = "2026-03-14T09:31:12Z"
    target.play(answer(409, {"changed": CHANGED, "plan_created_at": created}))
    plan = send(approved())
    assert plan.status == Status.CONFLICTED
    assert plan.conflict == {"changed": CHANGED, "plan_created_at": created}
    assert said(plan, "plan.conflicted") == plan.conflict
    assert Replan.objects.get().plan_id == plan.pk
    assert (plan.token, plan.next_attempt_at) == (None, None)
    one_key_one_body(send(plan), target, 1)
    assert target.reads == [plan.plan_id]


@pytest.mark.fm(14, 18)
@pytest.mark.parametrize("status", [409, 410, 412, 404, 403, 400, 422])
def test_no_refusal_is_believed_after_an_unknown(
    approved: Make, target: ScriptedTarget, status: int
) -> None:
    """FM-14, FM-18: the first attempt had applied it; whoever believes the second pays twice."""
    target.play(hang(applies=True), answer(status, {"changed": CHANGED, "code": "expired"}))
    plan = send(send(approved()))
    assert (plan.status, target.applications) == (Status.COMMITTED, [plan.plan_id])
    assert not Replan.objects.exists()
    assert "circuit.opened" not in actions(plan)
    one_key_one_body(plan, target, 2)


@pytest.mark.fm(18)
@pytest.mark.parametrize("final", ["expired", "not_applied", None])
@pytest.mark.parametrize("status", [409, 410, 404])
def test_a_refusal_after_an_unknown_is_settled_by_the_targets_final_word(
    approved: Make, target: ScriptedTarget, status: int, final: str | None
) -> None:
    """FM-18: nothing had been applied; the read says so, the refusal alone does not."""
    target.play(drop(), answer(status, {"changed": CHANGED}))
    target.says = answer(503)
    plan = send(send(approved()))
    assert plan.status == Status.UNKNOWN
    if final is None:
        assert given_up(plan).status == Status.UNRESOLVED
        return
    target.says = final
    plan = read(plan)
    assert plan.status == {"expired": "expired", "not_applied": "conflicted"}[final]
    assert (target.applications, Replan.objects.get().cause) == ([], plan.status)


@pytest.mark.fm(15)
@pytest.mark.parametrize(
    ("says", "status"),
    [("not_applied", Status.CONFLICTED), ("applied", Status.COMMITTED), ("open", Status.UNKNOWN)],
)
def test_a_bare_conflict_is_read(
    approved: Make, target: ScriptedTarget, says: str, status: Status
) -> None:
    """FM-15."""
    target.play(answer(409))
    target.says = says
    plan = send(approved())
    assert plan.status == status
    if status == Status.CONFLICTED:
        assert plan.conflict["changed"] is None


@pytest.mark.fm(16)
def test_in_progress_is_waited_for_with_the_same_key(
    approved: Make, target: ScriptedTarget
) -> None:
    """FM-16, T-8: while the target says that it is at work, nothing is sent."""
    target.play(answer(409, {"code": "in-progress"}))
    target.says = "in_progress"
    plan = send(approved())
    assert plan.status == Status.UNKNOWN
    assert plan.next_attempt_at is not None
    assert plan.next_read_at is not None
    assert plan.next_attempt_at > plan.next_read_at
    target.says = None
    plan = send(plan)
    assert (plan.status, target.applications) == (Status.COMMITTED, [plan.plan_id])
    one_key_one_body(plan, target, 2)


@pytest.mark.fm(17)
@pytest.mark.parametrize(
    "step", [answer(410), answer(400, {"type": "https://billing/problems/plan-expired"})]
)
def test_too_late_says_the_target(approved: Make, target: ScriptedTarget, step: Step) -> None:
    """FM-17: expired by the target's word, never recorded as the clock's or a person's (S-2)."""
    target.play(step)
    plan = send(approved())
    assert plan.status == Status.EXPIRED
    assert Replan.objects.get().cause == "expired"
    assert Event.objects.get(action="plan.expired").actor_kind == "target"
    assert plan.problem["status"] in (400, 410)


@pytest.mark.fm(20)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 415, 422, 501])
def test_a_definite_refusal_fails_with_the_targets_words(
    approved: Make, target: ScriptedTarget, billing: Target, status: int
) -> None:
    """FM-20: no re-plan loop; 401 and 403 are about the credential and open its circuit."""
    target.play(answer(status, {"code": "no", "detail": f"no: {TOKEN}"}))
    plan = send(approved())
    assert plan.status == Status.FAILED
    assert plan.problem == {"status": status, "code": "no", "detail": "no: [token removed]"}
    assert TOKEN not in plan.attempts.get().answer
    assert not Replan.objects.exists()
    billing.refresh_from_db()
    assert (billing.circuit_opened_at is not None) == (status in (401, 403))
    assert (str(status) in billing.circuit_reason) == (status in (401, 403))
    one_key_one_body(send(plan), target, 1)


@pytest.mark.fm(20)
@pytest.mark.parametrize("status", [401, 403])
def test_the_pages_say_why_nothing_is_sent_any_more(
    approved: Make, target: ScriptedTarget, client: Client, ada: User, status: int
) -> None:
    """FM-20: the refused plan has the target's words, the next one says what it waits for."""
    target.play(answer(status, {"detail": "The key was revoked."}))
    refused, held = approved(), approved()
    assert (send(refused).status, send(held).status) == (Status.FAILED, Status.APPROVED)
    assert len(target.commits) == 1
    client.force_login(ada)
    pages = [client.get(f"/plans/billing/{plan.plan_id}/").text for plan in (refused, held)]
    assert "The key was revoked." in pages[0]
    assert f"billing answered {status} to a commit" in pages[1]


def test_partly_applied_goes_to_a_person_at_once(approved: Make, target: ScriptedTarget) -> None:
    target.play(drop(applies=True))
    target.says = "partly_applied"
    plan = send(send(approved()))
    assert plan.status == Status.COMMITTED
    target.play(answer(409))
    plan = send(approved())
    assert plan.status == Status.UNRESOLVED
    assert actions(plan)[-2:] == ["plan.outcome_unknown", "plan.unresolved"]

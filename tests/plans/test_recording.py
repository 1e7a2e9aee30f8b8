"""An outcome is written down once, by whoever holds the attempt, and is never lost (T-12)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from audit import actors
from audit.models import Event
from plans.clock import clock
from plans.committing import Claim, claim_attempt
from plans.models import Attempt, Intent, Plan, Replan, Target
from plans.outcomes import Kind, Outcome
from plans.recording import close_attempt
from plans.resolving import checked
from plans.status import Status
from plans.submission import abandon
from tests.faults.scripted_target import Applied, ScriptedTarget, answer, drop
from tests.plans.engine import TOKEN, actions, fresh, outcomes, read, send, soon

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("calls_in_the_tests_transaction")]
type Make = Callable[..., Plan]
APPLIED = Outcome(Kind.APPLIED, "applied", {"refund_id": "rf_9"})
CONFLICTED = Outcome(Kind.CONFLICTED, "changed", changed=[{"path": "x"}])


def _claimed(plan: Plan) -> Claim:
    claim = claim_attempt(soon(plan).pk)
    assert claim is not None
    return claim


def _lapse(plan: Plan) -> Plan:
    """The lease is over; whoever comes next counts the attempt as unknown."""
    plan.attempts.filter(outcome="open").update(lease_until=clock() - timedelta(seconds=1))
    return send(plan)


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.COMMITTING, Status.UNRESOLVED])
def test_a_late_applied_still_commits(approved: Make, status: Status) -> None:
    """T-12: from committing, unknown and unresolved."""
    plan = approved()
    first = _claimed(plan)
    _lapse(plan)
    if status == Status.COMMITTING:
        _claimed(plan)
    elif status == Status.UNRESOLVED:
        Plan.objects.update(unknown_since=clock() - timedelta(days=1))
        read(plan)
    assert fresh(plan).status == status
    close_attempt(first.attempt, APPLIED, None)
    plan = fresh(plan)
    assert (plan.status, plan.result) == (Status.COMMITTED, {"refund_id": "rf_9"})
    assert set(outcomes(plan)) == {"unknown"}
    assert actions(plan)[-2:] == ["attempt.late_answer", "plan.committed"]


def test_the_second_attempts_answer_is_late_after_the_firsts(approved: Make) -> None:
    plan = approved()
    first = _claimed(plan)
    _lapse(plan)
    second = _claimed(plan)
    close_attempt(first.attempt, APPLIED, None)
    close_attempt(second.attempt, APPLIED, None)
    close_attempt(second.attempt, CONFLICTED, None)
    assert fresh(plan).status == Status.COMMITTED
    assert actions(plan).count("plan.committed") == 1
    assert "target.alarm" not in actions(plan)


@pytest.mark.parametrize(
    "late", [CONFLICTED, Outcome(Kind.FAILED, "x"), Outcome(Kind.EXPIRED, "x")]
)
def test_a_late_no_is_only_recorded(approved: Make, late: Outcome) -> None:
    plan = approved()
    claim = _claimed(plan)
    before = _lapse(plan)
    close_attempt(claim.attempt, late, None)
    plan = fresh(plan)
    assert (plan.status, plan.next_attempt_at) == (Status.UNKNOWN, before.next_attempt_at)
    assert Event.objects.get(action="attempt.late_answer").details["outcome"] == late.kind.value
    assert not Replan.objects.exists()


def test_an_answer_written_twice_counts_once(approved: Make) -> None:
    plan = approved()
    claim = _claimed(plan)
    close_attempt(claim.attempt, CONFLICTED, None)
    close_attempt(claim.attempt, CONFLICTED, None)
    assert fresh(plan).status == Status.CONFLICTED
    assert (Replan.objects.count(), actions(plan).count("attempt.closed")) == (1, 1)


def test_an_answer_needs_its_lease(approved: Make) -> None:
    plan = approved()
    claim = _claimed(plan)
    Attempt.objects.update(lease="00000000-0000-0000-0000-000000000001")
    close_attempt(claim.attempt, CONFLICTED, None)
    assert (fresh(plan).status, outcomes(plan)) == (Status.COMMITTING, ["open"])


def test_applied_after_a_person_said_not_applied_is_an_alarm(approved: Make, otto: User) -> None:
    """The final word stands, and an operator is told that it was wrong."""
    plan = approved()
    claim = _claimed(plan)
    _lapse(plan)
    Plan.objects.update(unknown_since=clock() - timedelta(days=1))
    read(plan)
    checked(plan.pk, applied=False, note="nothing there", actor=actors.person(otto))
    close_attempt(claim.attempt, APPLIED, None)
    assert fresh(plan).status == Status.FAILED
    alarm = Event.objects.get(action="target.alarm")
    assert alarm.details == {"alarm": "applied-after-it-was-closed"}


# ── Behind our back (FM-47) ─────────────────────────────────────────────────────────────────


@pytest.mark.fm(47)
def test_the_agent_committed_it_itself_with_our_key(approved: Make, target: ScriptedTarget) -> None:
    plan = approved()
    target.applied[plan.plan_id] = Applied(plan.idempotency_key)
    plan = send(plan)
    assert (plan.status, plan.applied_out_of_band) == (Status.COMMITTED, True)
    assert Event.objects.get(action="plan.committed").details["applied_out_of_band"] is True
    assert Event.objects.get(action="target.alarm").details == {"alarm": "applied-out-of-band"}


@pytest.mark.fm(47)
def test_the_target_says_that_it_had_applied_it_before_us(
    approved: Make, target: ScriptedTarget
) -> None:
    plan = approved()
    body = {"plan_id": plan.plan_id, "status": "applied", "result": {}}
    target.play(answer(200, {**body, "first_applied_at": "2026-03-14T09:31:12Z"}))
    assert send(plan).applied_out_of_band


@pytest.mark.fm(47)
@pytest.mark.parametrize("status", [409, 410, 412])
def test_somebody_committed_it_with_another_key(
    approved: Make, target: ScriptedTarget, status: int
) -> None:
    """T-7: a first refusal is confirmed by one read."""
    plan = approved()
    target.applied[plan.plan_id] = Applied("another-key")
    target.play(answer(status, {"changed": [{"path": "refunded_cents"}]}))
    plan = send(plan)
    assert (plan.status, plan.applied_out_of_band) == (Status.COMMITTED, True)
    assert (plan.result, plan.problem) == ({"refund_id": "rf_1"}, None)
    assert (len(target.reads), len(target.commits)) == (1, 1)
    assert Event.objects.get(action="target.alarm").details == {"alarm": "applied-out-of-band"}
    assert not Replan.objects.exists()


@pytest.mark.parametrize(
    ("says", "status"),
    [
        ("in_progress", Status.UNKNOWN),
        (answer(502), Status.UNKNOWN),
        (drop(), Status.UNKNOWN),
        ("partly_applied", Status.UNRESOLVED),
        ("open", Status.CONFLICTED),
        ("not_applied", Status.CONFLICTED),
        ("expired", Status.CONFLICTED),
    ],
)
def test_a_first_refusal_is_believed_when_the_read_agrees(
    approved: Make, target: ScriptedTarget, says: Any, status: Status
) -> None:
    target.play(answer(409, {"changed": [{"path": "refunded_cents"}]}))
    target.says = says
    plan = send(approved())
    assert (plan.status, outcomes(plan)[0] == "unknown") == (
        status,
        status != Status.CONFLICTED,
    )


def test_without_a_read_back_a_first_refusal_stands_alone(
    approved: Make, target: ScriptedTarget
) -> None:
    Target.objects.update(plan_path="", allow_unverified=True)
    target.play(answer(409, {"changed": [{"path": "refunded_cents"}]}))
    assert (send(approved()).status, target.reads) == (Status.CONFLICTED, [])


# ── What is kept of an answer ───────────────────────────────────────────────────────────────


def test_the_answer_is_kept_without_the_token(approved: Make, target: ScriptedTarget) -> None:
    plan = approved()
    body = {"plan_id": plan.plan_id, "status": "applied", "result": {"echo": TOKEN}}
    target.play(answer(200, body, X_Other="1", Retry_After=TOKEN))
    plan = send(plan)
    attempt = plan.attempts.get()
    assert plan.result == {"echo": "[token removed]"}
    assert (attempt.http_status, TOKEN in attempt.answer) == (200, False)
    assert attempt.answer_headers == {
        "content-type": "application/json",
        "retry-after": "[token removed]",
    }
    assert attempt.elapsed_ms is not None
    everything = repr([event.details for event in Event.objects.all()])
    assert TOKEN not in everything


def test_a_target_with_another_clock_is_warned_of(approved: Make, target: ScriptedTarget) -> None:
    """C-2: it changes nothing else."""
    plan = approved()
    body = {"plan_id": plan.plan_id, "status": "applied", "result": {}}
    target.play(answer(200, body, Date="Sat, 14 Mar 2020 09:31:12 GMT"))
    assert send(plan).status == Status.COMMITTED
    assert Event.objects.get(action="target.alarm").details == {"alarm": "clock-skew"}


@pytest.mark.fm(45)
@pytest.mark.parametrize("kind", ["unknown", "conflicted", "committed"])
def test_what_the_agent_abandoned_in_flight_ends_as_the_target_says(
    approved: Make, target: ScriptedTarget, kind: str
) -> None:
    """FM-45, A-8: both events, and nothing is planned again for an intent that is over."""
    plan = approved()
    claim = _claimed(plan)
    _, in_flight = abandon(plan, reason="task_end", note="", actor=actors.agent(1, "support-agent"))
    assert (in_flight, fresh(plan).status) == (True, Status.COMMITTING)
    outcome = {"unknown": Outcome(Kind.UNKNOWN, "x"), "conflicted": CONFLICTED}
    close_attempt(claim.attempt, outcome.get(kind, APPLIED), None)
    assert fresh(plan).status == kind
    assert Intent.objects.get().status == Intent.Status.ABANDONED
    assert {"plan.abandon_noted", "attempt.closed"} <= set(actions(plan))
    assert not Replan.objects.exists()

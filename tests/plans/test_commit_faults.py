"""Every way a commit can break, and the only acceptable outcome (FM-2 … FM-21, T-5 … T-8)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from audit.models import Event
from plans.clock import clock
from plans.models import Plan, Replan, Target
from plans.status import Status
from tests.faults.raw_target import RawTarget
from tests.faults.scripted_target import (
    CHANGED,
    ScriptedTarget,
    Step,
    answer,
    apply,
    drip,
    drop,
    hang,
    raw,
)
from tests.plans.engine import TOKEN, actions, outcomes, read, send

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("calls_in_the_tests_transaction")]
type Make = Callable[..., Plan]

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CUT = {
    "reset in the body": HEAD + b"Content-Length: 99\r\n\r\n{",
    "short length": HEAD + b'Content-Length: 9\r\n\r\n{"plan_i',
    "cut chunk": HEAD + b'Transfer-Encoding: chunked\r\n\r\n40\r\n{"plan_id"',
    "garbage": b"\x00\x01garbage",
}


def _one_key_one_body(plan: Plan, target: ScriptedTarget, attempts: int) -> None:
    """T-1, T-9: never a new key, never another body; the Attempt header counts."""
    assert len(target.commits) == attempts
    assert target.keys() == {plan.idempotency_key}
    assert len(target.bodies()) == 1
    counted = [commit.headers["Attempt"] for commit in target.commits]
    assert counted == [str(number) for number in range(1, attempts + 1)]


def _given_up(plan: Plan) -> Plan:
    """As if the time to find out were over (T-10)."""
    assert plan.status == Status.UNKNOWN
    Plan.objects.filter(pk=plan.pk).update(unknown_since=clock() - timedelta(days=1))
    return read(plan)


def _said(plan: Plan, action: str) -> dict[str, Any]:
    event = Event.objects.filter(plan_id=plan.plan_id, action=action).latest("id")
    details: dict[str, Any] = event.details
    return details


@pytest.mark.fm(2, 3, 8)
@pytest.mark.parametrize("applies", [False, True], ids=["before it applied", "after it applied"])
@pytest.mark.parametrize("fault", [hang, drop, drip])
def test_silence_is_unknown_and_the_same_key_settles_it(
    approved: Make, target: ScriptedTarget, fault: Callable[..., Step], applies: bool
) -> None:
    """FM-2, FM-3, FM-4, FM-8."""
    target.play(fault(applies=applies))
    plan = send(approved())
    assert (plan.status, outcomes(plan)) == (Status.UNKNOWN, ["unknown"])
    assert plan.token is not None
    plan = send(plan)
    assert (plan.status, plan.result) == (Status.COMMITTED, {"refund_id": "rf_1"})
    assert outcomes(plan) == ["unknown", "applied"]
    assert plan.attempts.get(number=2).replayed is applies
    assert not plan.applied_out_of_band
    assert target.applications == [plan.plan_id]
    _one_key_one_body(plan, target, 2)
    assert actions(plan).count("plan.committed") == 1


@pytest.mark.fm(4, 5)
@pytest.mark.parametrize("mode", ["accept-then-reset", "read-then-reset", "reset-in-body"])
def test_a_reset_is_unknown_wherever_it_came(
    approved: Make, quick_billing: Target, mode: str
) -> None:
    """FM-4, FM-5: before the body was read, after it, and in the answer: nobody can tell."""
    with RawTarget(mode) as bare:
        bare.play(mode, "ok")
        Target.objects.update(base_url=bare.base_url, total_timeout_seconds=5)
        plan = send(approved(plan_id="plan_1"))
        first = plan.attempts.get()
        assert (plan.status, first.outcome, first.reason) == (Status.UNKNOWN, "unknown", "reset")
        plan = send(plan)
    assert (plan.status, outcomes(plan)) == (Status.COMMITTED, ["unknown", "applied"])
    heard = [request.partition(b"\r\n\r\n")[2] for request in bare.requests]
    assert len({body for body in heard if body}) == 1
    assert all(plan.idempotency_key.encode() in request for request in bare.requests if request)


@pytest.mark.fm(5)
@pytest.mark.parametrize("name", CUT)
def test_a_broken_answer_is_unknown(approved: Make, target: ScriptedTarget, name: str) -> None:
    """FM-5."""
    target.play(raw(CUT[name], applies=True))
    plan = send(approved())
    assert plan.status == Status.UNKNOWN
    plan = send(plan)
    assert plan.status == Status.COMMITTED
    assert target.applications == [plan.plan_id]
    _one_key_one_body(plan, target, 2)


@pytest.mark.fm(6, 19, 21)
@pytest.mark.parametrize(
    ("step", "alarm"),
    [
        (answer(200, b"<html>Sign in</html>"), "not-json"),
        (answer(200, b'{"plan_id":"a","plan_id":"b"}'), "not-json"),
        (raw(HEAD + b'\r\n{"plan_id":'), "not-json"),
        (answer(200, {}), "other-plan"),
        (answer(200, {"plan_id": "another", "status": "applied", "result": {}}), "other-plan"),
        (answer(200, []), "not-json"),
        (answer(307, {}, Location="http://169.254.169.254/"), "redirect-not-followed"),
        (answer(308, {}, Location="/elsewhere"), "redirect-not-followed"),
        (answer(422, {"code": "idempotency-key-reused"}), "idempotency-key-reused"),
    ],
)
def test_an_answer_that_proves_nothing_is_read_after_and_warned_of(
    approved: Make, target: ScriptedTarget, step: Step, alarm: str
) -> None:
    """FM-6, FM-19, FM-21: never success, never failure, never another key or address."""
    target.play(step)
    plan = send(approved())
    assert (plan.status, target.reads) == (Status.UNKNOWN, [plan.plan_id])
    assert _said(plan, "target.alarm") == {"alarm": alarm}
    plan = send(plan)
    assert plan.status == Status.COMMITTED
    assert target.applications == [plan.plan_id]
    _one_key_one_body(plan, target, 2)


@pytest.mark.fm(7)
@pytest.mark.parametrize("step", [answer(204, b""), answer(200, b"")])
@pytest.mark.parametrize("applies", [True, False])
def test_an_empty_success_is_read(
    approved: Make, target: ScriptedTarget, step: Step, applies: bool
) -> None:
    """FM-7."""
    target.play(step)
    plan = approved()
    if applies:
        target.says = answer(200, {"plan_id": plan.plan_id, "status": "applied", "result": {}})
    plan = send(plan)
    assert plan.status == (Status.COMMITTED if applies else Status.UNKNOWN)
    assert len(target.commits) == 1
    assert "target.alarm" not in actions(plan)


@pytest.mark.fm(9)
@pytest.mark.parametrize("status", [408, 425, 500, 502, 503, 504])
@pytest.mark.parametrize("applies", [False, True])
def test_a_server_error_is_unknown_and_sent_again(
    approved: Make, target: ScriptedTarget, status: int, applies: bool
) -> None:
    """FM-9; the read after it finds what had been applied without a second call."""
    target.play(answer(status, applies=applies))
    plan = send(approved())
    if not applies:
        assert plan.status == Status.UNKNOWN
        plan = send(plan)
    assert plan.status == Status.COMMITTED
    assert target.applications == [plan.plan_id]
    _one_key_one_body(plan, target, 1 if applies else 2)


@pytest.mark.fm(10)
@pytest.mark.parametrize(
    ("says", "status"),
    [
        ("applied", Status.COMMITTED),
        ("not_applied", Status.CONFLICTED),
        ("open", Status.UNRESOLVED),
        (answer(500), Status.UNRESOLVED),
    ],
)
def test_a_server_error_that_is_replayed_stops_the_resends(
    approved: Make, target: ScriptedTarget, says: str | Step, status: Status
) -> None:
    """FM-10, T-13: one replay seen, then only the plan's state counts, else a person looks."""
    target.play(answer(500), answer(500, Idempotent_Replayed="true"))
    plan = send(send(approved()))
    assert (plan.status, plan.next_attempt_at) == (Status.UNKNOWN, None)
    assert plan.next_read_at is not None
    plan = send(plan)
    assert len(target.commits) == 2
    target.says = says
    plan = read(plan)
    if status == Status.UNRESOLVED:
        plan = _given_up(plan)
    assert plan.status == status
    assert (len(target.commits), target.applications) == (2, [])


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
    assert _said(plan, "plan.conflicted") == plan.conflict
    assert Replan.objects.get().plan_id == plan.pk
    assert (plan.token, plan.next_attempt_at) == (None, None)
    _one_key_one_body(send(plan), target, 1)
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
    _one_key_one_body(plan, target, 2)


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
        assert _given_up(plan).status == Status.UNRESOLVED
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
    _one_key_one_body(plan, target, 2)


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
    _one_key_one_body(send(plan), target, 1)


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


def test_a_result_that_misses_its_schema_is_unknown(approved: Make, target: ScriptedTarget) -> None:
    """T-6: then the same key again, and the plan's state."""
    plan = approved()
    plan.operation.result_schema = {"required": ["receipt"]}
    plan.operation.save()
    target.play(apply)
    target.says = answer(503)
    plan = send(plan)
    assert (plan.status, plan.attempts.get().reason) == (Status.UNKNOWN, "result-not-valid")


def test_partly_applied_goes_to_a_person_at_once(approved: Make, target: ScriptedTarget) -> None:
    target.play(drop(applies=True))
    target.says = "partly_applied"
    plan = send(send(approved()))
    assert plan.status == Status.COMMITTED
    target.play(answer(409))
    plan = send(approved())
    assert plan.status == Status.UNRESOLVED
    assert actions(plan)[-2:] == ["plan.outcome_unknown", "plan.unresolved"]

"""Every way an answer can break, and the only acceptable outcome (FM-2 … FM-21, T-5, T-6)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plans.models import Plan, Target
from plans.status import Status
from tests.faults.raw_target import RawTarget
from tests.faults.scripted_target import ScriptedTarget, Step, answer, apply, drip, drop, hang, raw
from tests.plans.engine import actions, given_up, one_key_one_body, outcomes, read, said, send

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("calls_in_the_tests_transaction")]
type Make = Callable[..., Plan]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CUT = {
    "reset in the body": HEAD + b"Content-Length: 99\r\n\r\n{",
    "short length": HEAD + b'Content-Length: 9\r\n\r\n{"plan_i',
    "cut chunk": HEAD + b'Transfer-Encoding: chunked\r\n\r\n40\r\n{"plan_id"',
    "garbage": b"\x00\x01garbage",
}


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
    one_key_one_body(plan, target, 2)
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
    one_key_one_body(plan, target, 2)


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
    assert said(plan, "target.alarm") == {"alarm": alarm}
    plan = send(plan)
    assert plan.status == Status.COMMITTED
    assert target.applications == [plan.plan_id]
    one_key_one_body(plan, target, 2)


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
    one_key_one_body(plan, target, 1 if applies else 2)


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
        plan = given_up(plan)
    assert plan.status == status
    assert (len(target.commits), target.applications) == (2, [])


def test_a_result_that_misses_its_schema_is_unknown(approved: Make, target: ScriptedTarget) -> None:
    """T-6: then the same key again, and the plan's state."""
    plan = approved()
    plan.operation.result_schema = {"required": ["receipt"]}
    plan.operation.save()
    target.play(apply)
    target.says = answer(503)
    plan = send(plan)
    assert (plan.status, plan.attempts.get().reason) == (Status.UNKNOWN, "result-not-valid")

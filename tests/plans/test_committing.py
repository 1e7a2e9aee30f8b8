"""A commit is claimed under a lease, at its moment, by one; nothing else is sent (T-3, Q-1)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection

from audit.models import Event
from plans import gateway
from plans.clock import clock
from plans.configuration.connections import PlansInFlight, reconnect
from plans.custody import Secret, encrypt
from plans.models import Attempt, Plan, Replan, Target
from plans.oversight import oversight
from plans.status import Status
from tests.faults.scripted_target import ScriptedTarget, hang
from tests.plans.engine import TOKEN, actions, outcomes, send

pytestmark = pytest.mark.django_db(transaction=True)
type Make = Callable[..., Plan]
LONG = timedelta(hours=1)


def test_it_commits_once_with_the_stored_key_and_body(
    approved: Make, target: ScriptedTarget
) -> None:
    plan = send(approved())
    assert (plan.status, plan.result) == (Status.COMMITTED, {"refund_id": "rf_1"})
    [sent] = target.commits
    body = {"plan_token": TOKEN, "input_fingerprint": plan.input_fingerprint}
    assert json.loads(sent.body) == body
    assert (sent.key, sent.headers["Plan-Id"]) == (plan.idempotency_key, plan.plan_id)
    assert (sent.headers["Attempt"], "Cookie" in sent.headers) == ("1", False)
    assert sent.headers["Authorization"] == "Bearer billing-token-of-the-tests"
    assert (plan.token, plan.commit_body) == (None, None)
    assert actions(plan)[-3:] == ["attempt.started", "attempt.closed", "plan.committed"]


def test_a_structured_field_key_is_quoted(
    approved: Make, target: ScriptedTarget, quick_billing: Target
) -> None:
    quick_billing.key_style = "sf-string"
    quick_billing.save()
    plan = send(approved())
    assert target.keys() == {f'"{plan.idempotency_key}"'}


def test_no_transaction_spans_the_call(
    approved: Make, target: ScriptedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T-3: the attempt is there for others to see before a socket is opened; the client checks."""
    plan, seen = approved(), []
    real = gateway.exchange

    def watched(*args: object, **kwargs: object) -> gateway.Exchange:
        with ThreadPoolExecutor(1) as other:
            seen.append((connection.in_atomic_block, other.submit(_open_attempts).result()))
        return real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(gateway, "exchange", watched)
    assert send(plan).status == Status.COMMITTED
    assert seen == [(False, 1)]


def _open_attempts() -> int:
    try:
        return Attempt.objects.filter(outcome="open").count()
    finally:
        connection.close()


@pytest.mark.fm(1)
@pytest.mark.parametrize("fault", ["connect", "tls", "dns"])
def test_what_never_left_is_sent_later_with_the_same_key(
    approved: Make, target: ScriptedTarget, quick_billing: Target, fault: str
) -> None:
    """FM-1, T-13: after 1, 3, 9, then every 20 s, outside the count of the retries."""
    if fault == "connect":
        target.leave()
    else:
        nowhere = "http://no-such-name.invalid"
        secure = target.base_url.replace("http", "https")
        Target.objects.update(base_url=secure if fault == "tls" else nowhere)
    plan, waits = approved(), []
    for _ in range(5):
        plan = send(plan)
        assert (plan.status, plan.problem["status"]) == (Status.COMMITTING, None)
        closed = plan.attempts.latest("number").closed_at
        assert closed is not None
        assert plan.next_attempt_at is not None
        waits.append(round((plan.next_attempt_at - closed).total_seconds(), 1))
    assert (waits, outcomes(plan), target.commits) == ([1, 3, 9, 20, 20], ["not_sent"] * 5, [])
    assert set(plan.attempts.values_list("reason", flat=True)) == {fault}
    if fault == "connect":
        target.come_back()
        plan = send(plan)
        assert (plan.status, outcomes(plan)[-1]) == (Status.COMMITTED, "applied")
        assert (target.keys(), len(target.commits)) == ({plan.idempotency_key}, 1)


@pytest.mark.fm(1)
def test_what_never_left_expires_when_its_window_closes(
    approved: Make, target: ScriptedTarget
) -> None:
    """FM-1, T-3: no wait outlasts the window, and nothing is sent after it."""
    target.leave()
    plan = approved()
    decide_by = clock() + timedelta(seconds=0.6)
    Plan.objects.filter(pk=plan.pk).update(decide_by=decide_by)
    plan = send(plan)
    assert plan.status == Status.COMMITTING
    assert plan.next_attempt_at == decide_by + timedelta(milliseconds=1)
    time.sleep(0.7)
    plan = send(plan)
    assert (plan.status, outcomes(plan)) == (Status.EXPIRED, ["not_sent"])
    assert Replan.objects.get().cause == "expired"
    assert Event.objects.get(action="plan.expired").actor_id == "clock"


@pytest.mark.parametrize(("seconds", "sent"), [(0.2, False), (30, True)])
def test_the_margin_before_the_expiry_is_kept(
    approved: Make, target: ScriptedTarget, seconds: float, sent: bool
) -> None:
    """T-3: total deadline, here 0.4 s."""
    plan, now = approved(), clock()
    columns = {"expires_at": now + timedelta(seconds=seconds), "decide_by": now + LONG}
    Plan.objects.filter(pk=plan.pk).update(received_at=now - LONG, **columns)
    plan = send(plan)
    assert plan.status == (Status.COMMITTED if sent else Status.EXPIRED)
    assert len(target.commits) == sent


def _switch_ada_off(plan: Plan) -> None:
    User.objects.filter(username="ada").update(is_active=False)


def _take_the_group_away(plan: Plan) -> None:
    User.objects.get(username="ada").groups.clear()


def _give_ada_the_agent(plan: Plan) -> None:
    type(plan.agent).objects.update(owner=User.objects.get(username="ada"))


def _raise_the_risk(plan: Plan) -> None:
    type(plan.operation).objects.update(risk="critical")


@pytest.mark.fm(49)
@pytest.mark.parametrize(
    "change", [_switch_ada_off, _take_the_group_away, _give_ada_the_agent, _raise_the_risk]
)
def test_an_approval_that_does_not_stand_any_more_goes_back_to_people(
    approved: Make, target: ScriptedTarget, change: Callable[[Plan], None]
) -> None:
    """FM-49, B-11: a new round on what is shown now; the event has the reason."""
    plan = approved()
    change(plan)
    plan = send(plan)
    assert (plan.status, plan.round, plan.approvals_given) == (Status.PENDING, 2, 0)
    assert (target.commits, plan.next_attempt_at, plan.approved_at) == ([], None, None)
    assert Event.objects.get(action="plan.reopened").details["reason"]
    assert oversight().assess(plan).digest == plan.digest


@pytest.mark.fm(50)
@pytest.mark.parametrize("left", ["approved", "committing"])
@pytest.mark.parametrize("edit", ["address", "credential"])
def test_a_changed_connection_makes_it_stale(
    approved: Make, target: ScriptedTarget, quick_billing: Target, left: str, edit: str
) -> None:
    """FM-50: an edit is refused while plans are approved; where it happened, nothing is sent."""
    plan = approved()
    if left == "committing":
        target.leave()
        assert send(plan).status == Status.COMMITTING
        target.come_back()
    elsewhere = target.base_url.replace("127.0.0.1", "localhost")
    address = elsewhere if edit == "address" else target.base_url
    with pytest.raises(PlansInFlight):
        reconnect(quick_billing, address, Secret("another-token-of-the-tests"))
    changes = {"base_url": address} if edit == "address" else {"credential": encrypt(b"another")}
    Target.objects.update(connection_version=2, **changes)
    plan = send(plan)
    assert (plan.status, target.commits) == (Status.STALE, [])
    assert "address or credential was changed" in str(_reason(plan, "plan.stale"))
    assert Replan.objects.get().cause == "stale"


def _reason(plan: Plan, action: str) -> object:
    return Event.objects.get(plan_id=plan.plan_id, action=action).details["reason"]


def test_an_open_circuit_stops_first_sends_until_it_closes(
    approved: Make, target: ScriptedTarget
) -> None:
    """T-7."""
    plan = approved()
    Target.objects.update(circuit_opened_at=clock(), circuit_reason="401")
    plan = send(plan)
    assert (plan.status, target.commits) == (Status.APPROVED, [])
    assert plan.next_attempt_at is not None
    assert plan.next_attempt_at > clock()
    Target.objects.update(circuit_opened_at=None, circuit_reason="")
    assert send(plan).status == Status.COMMITTED


def test_an_open_circuit_stops_neither_resends_nor_reads(
    approved: Make, target: ScriptedTarget
) -> None:
    target.play(hang())
    plan = send(approved())
    Target.objects.update(circuit_opened_at=clock(), circuit_reason="401")
    assert send(plan).status == Status.COMMITTED

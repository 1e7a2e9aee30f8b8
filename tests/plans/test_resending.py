"""When an unknown or a put-off commit is sent again, and when never (T-9, T-11, T-13, FM-11 …)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from plans.clock import clock
from plans.models import Plan, Replan, Target
from plans.status import Status
from tests.faults.scripted_target import ScriptedTarget, answer, drop, hang
from tests.plans.engine import outcomes, read, send

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("calls_in_the_tests_transaction")]
type Make = Callable[..., Plan]


def _waits(plan: Plan) -> float:
    """Seconds from the end of the last attempt to the next one, as the database has them."""
    closed = plan.attempts.latest("number").closed_at
    assert closed is not None
    assert plan.next_attempt_at is not None
    return (plan.next_attempt_at - closed).total_seconds()


def _ago(plan: Plan, seconds: float, *columns: str) -> None:
    """As if the plan had been sent for the first time so long ago."""
    plan.attempts.update(started_at=clock() - timedelta(seconds=seconds))
    for column in columns:
        Plan.objects.filter(pk=plan.pk).update(**{column: clock() - timedelta(seconds=seconds)})


def _set(**columns: Any) -> None:
    Target.objects.update(**columns)


def test_the_schedule_is_one_three_nine_twenty_seconds(
    approved: Make, target: ScriptedTarget
) -> None:
    """T-9: ±20 %; then no more sends, and reads at least every 5 s."""
    target.play(*[drop()] * 5)
    plan = send(approved())
    for seconds in (1, 3, 9, 20):
        assert 0.79 * seconds <= _waits(plan) <= 1.21 * seconds
        assert plan.next_read_at is not None
        assert plan.next_read_at <= clock() + timedelta(seconds=5)
        plan = send(plan)
    assert (plan.status, plan.next_attempt_at) == (Status.UNKNOWN, None)
    plan = send(plan)
    assert outcomes(plan) == ["unknown"] * 5
    assert (target.keys(), len(target.bodies())) == ({plan.idempotency_key}, 1)
    plan = read(plan)
    assert plan.next_read_at is not None
    assert plan.next_read_at <= clock() + timedelta(seconds=5)


def test_fractions_of_a_second_are_kept(approved: Make, target: ScriptedTarget) -> None:
    _set(retry_delays_seconds=[0.2])
    target.play(drop(), drop())
    plan = send(approved())
    assert 0.15 <= _waits(plan) <= 0.25
    assert send(plan).next_attempt_at is None


@pytest.mark.fm(48)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("retention", "sent_ago", "resends"),
    [(None, 140, True), (None, 151, False), (100, 40, True), (100, 51, False), (0, 0, False)],
)
def test_half_of_the_key_retention_is_the_end(
    approved: Make,
    target: ScriptedTarget,
    retention: int | None,
    sent_ago: int,
    resends: bool,
    known: bool,
) -> None:
    """FM-48: past it the target may have forgotten the key, and would apply it again."""
    target.play(drop())
    plan = send(approved())
    _set(key_retention_seconds=retention)
    _ago(plan, sent_ago)
    plan = send(plan)
    assert len(target.commits) == (2 if resends else 1)
    if not resends:
        assert (plan.status, plan.next_attempt_at) == (Status.UNKNOWN, None)
        target.says = "not_applied" if known else answer(503)
        plan = read(plan)
        assert plan.status == (Status.CONFLICTED if known else Status.UNKNOWN)
        if not known:
            Plan.objects.update(unknown_since=clock() - timedelta(days=1))
            assert read(plan).status == Status.UNRESOLVED
        assert len(target.commits) == 1


def test_a_resend_that_would_come_too_late_is_not_planned(
    approved: Make, target: ScriptedTarget
) -> None:
    _set(key_retention_seconds=1)
    target.play(drop())
    plan = send(approved())
    assert (plan.status, plan.next_attempt_at) == (Status.UNKNOWN, None)
    assert plan.next_read_at is not None


def test_what_never_left_does_not_use_up_the_retention(
    approved: Make, target: ScriptedTarget
) -> None:
    """The target has not seen the key yet."""
    target.leave()
    plan = send(approved())
    _ago(plan, 1000, "first_sent_at")
    _set(key_retention_seconds=None)
    target.come_back()
    target.play(drop())
    plan = send(plan)
    assert plan.next_attempt_at is not None
    assert send(plan).status == Status.COMMITTED


@pytest.mark.parametrize(("enforces", "resends"), [(True, True), (False, False)])
def test_past_the_expiry_only_a_target_that_enforces_it_is_asked_again(
    approved: Make, target: ScriptedTarget, enforces: bool, resends: bool
) -> None:
    target.play(drop())
    plan = send(approved())
    _set(enforces_expiry=enforces)
    past = clock() - timedelta(seconds=1)
    Plan.objects.update(expires_at=past, decide_by=past)
    plan = send(plan)
    assert len(target.commits) == (2 if resends else 1)
    assert plan.status == (Status.COMMITTED if resends else Status.UNKNOWN)


def test_past_the_expiry_there_is_never_a_first_send(
    approved: Make, target: ScriptedTarget
) -> None:
    plan, past = approved(), clock() - timedelta(seconds=1)
    Plan.objects.update(expires_at=past, decide_by=past)
    assert (send(plan).status, target.commits) == (Status.EXPIRED, [])


@pytest.mark.parametrize("change", ["connection", "approver"])
def test_a_resend_needs_what_a_first_send_needs(
    approved: Make, target: ScriptedTarget, change: str
) -> None:
    """The first attempt may have come to nothing: then the resend is what applies it (T-3)."""
    target.play(drop())
    plan = send(approved())
    if change == "connection":
        _set(connection_version=2)
    else:
        User.objects.filter(username="ada").update(is_active=False)
    plan = send(plan)
    assert (plan.status, plan.next_attempt_at, len(target.commits)) == (Status.UNKNOWN, None, 1)
    target.says = "expired"
    assert read(plan).status == Status.EXPIRED


@pytest.mark.parametrize("fault", [hang, drop])
@pytest.mark.parametrize("applies", [True, False])
def test_a_target_without_idempotency_gets_one_attempt_ever(
    approved: Make, target: ScriptedTarget, fault: Any, applies: bool
) -> None:
    """T-11."""
    _set(idempotency=False)
    target.play(fault(applies=applies))
    plan = read(send(send(approved())))
    assert (plan.next_attempt_at, len(target.commits)) == (None, 1)
    assert plan.status == (Status.COMMITTED if applies else Status.UNKNOWN)


def test_a_target_without_idempotency_that_says_later_gets_no_second_attempt(
    approved: Make, target: ScriptedTarget
) -> None:
    """T-11: it waits for its end, and is planned again."""
    _set(idempotency=False)
    target.play(answer(429))
    plan = send(send(approved()))
    assert (plan.status, len(target.commits)) == (Status.COMMITTING, 1)
    Plan.objects.update(decide_by=clock())
    plan = send(plan)
    assert (plan.status, len(target.commits)) == (Status.EXPIRED, 1)
    assert Replan.objects.get().cause == "expired"


@pytest.mark.fm(11, 12)
@pytest.mark.parametrize("status", [503, 429])
@pytest.mark.parametrize(
    ("header", "lower", "upper"),
    [
        ("2", 2, 2.1),
        ("0", 0.8, 1.3),
        ("-1", 0.8, 1.3),
        ("soon", 0.8, 1.3),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0.8, 1.3),
        ("9999999999", 300, 300.1),
        ("9" * 5000, 300, 300.1),
    ],
)
def test_retry_after_is_a_lower_bound_with_a_cap(
    approved: Make, target: ScriptedTarget, status: int, header: str, lower: float, upper: float
) -> None:
    """FM-11, FM-12: the wait is in the database; junk is ignored."""
    target.play(answer(status, Retry_After=header))
    plan = send(approved())
    assert plan.status == (Status.COMMITTING if status == 429 else Status.UNKNOWN)
    assert lower <= _waits(plan) <= upper
    plan = send(plan)
    assert (plan.status, len(target.commits)) == (Status.COMMITTED, 2)
    assert target.keys() == {plan.idempotency_key}


@pytest.mark.fm(12)
def test_a_retry_after_beyond_the_window_ends_with_the_window(
    approved: Make, target: ScriptedTarget
) -> None:
    """FM-12: expired and planned again, when the time is over and not when the target says."""
    plan = approved()
    decide_by = (clock() + timedelta(seconds=60)).replace(microsecond=0)
    Plan.objects.update(decide_by=decide_by)
    target.play(answer(429, Retry_After="9999999999"))
    plan = send(plan)
    assert plan.next_attempt_at == decide_by + timedelta(milliseconds=1)
    Plan.objects.update(decide_by=clock())
    plan = send(plan)
    assert (plan.status, len(target.commits)) == (Status.EXPIRED, 1)
    assert Replan.objects.get().cause == "expired"


def test_429_is_outside_the_count(approved: Make, target: ScriptedTarget) -> None:
    """T-13: 1, 3, 9, 20, 20 s; T-9's retries are all still there for an unknown after it."""
    target.play(*[answer(429)] * 5, *[drop()] * 4)
    plan, waits = approved(), []
    for _ in range(5):
        plan = send(plan)
        waits.append(round(_waits(plan)))
    assert waits == [1, 3, 9, 20, 20]
    for seconds in (1, 3, 9, 20):
        plan = send(plan)
        assert 0.79 * seconds <= _waits(plan) <= 1.21 * seconds
    assert send(plan).status == Status.COMMITTED


def test_what_never_left_after_an_unknown_leaves_it_unknown(
    approved: Make, target: ScriptedTarget
) -> None:
    """T-8, T-13: outside the count, read meanwhile, and given up at the deadline of T-10."""
    target.play(drop(applies=True))
    plan = send(approved())
    target.leave()
    for wait in (1, 3, 9, 20, 20, 20):
        plan = send(plan)
        assert (plan.status, round(_waits(plan))) == (Status.UNKNOWN, wait)
        assert plan.next_read_at is not None
        assert plan.next_read_at <= clock() + timedelta(seconds=5)
    target.come_back()
    plan = send(plan)
    assert (plan.status, plan.attempts.latest("number").replayed) == (Status.COMMITTED, True)
    assert target.applications == [plan.plan_id]


def test_nothing_is_sent_after_the_deadline_of_resolution(
    approved: Make, target: ScriptedTarget
) -> None:
    """T-10: whatever was scheduled, a person looks now."""
    target.play(drop())
    plan = send(approved())
    Plan.objects.update(unknown_since=clock() - timedelta(seconds=901))
    plan = send(plan)
    assert (plan.status, len(target.commits)) == (Status.UNKNOWN, 1)
    assert read(plan).status == Status.UNRESOLVED

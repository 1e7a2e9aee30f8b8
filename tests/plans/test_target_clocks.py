"""A target whose clock is two minutes off: it is not well, and no window moves (C-2, FM-37)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.decisions import Ballot, decide
from audit.models import Event
from plans import health
from plans.clock import clock
from plans.errors import PlanExpired
from plans.models import Plan, Replan, Target
from plans.status import Status
from tests.faults.scripted_target import Reply, ScriptedTarget, Step, answer, apply
from tests.plans.engine import fresh, send

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("calls_in_the_tests_transaction"),
    pytest.mark.fm(37),
]
type Make = Callable[..., Plan]
OFF = pytest.mark.parametrize("minutes", [2, -2], ids=["ahead", "behind"])


@pytest.fixture(autouse=True)
def _nothing_seen() -> Iterator[None]:
    health.forget()
    yield
    health.forget()


def dated(step: Step, minutes: int) -> Step:
    """The step's answer with the target's own idea of the time."""

    def later(target: ScriptedTarget, request: object, plan_id: str) -> Reply:
        reply = step(target, request, plan_id)  # type: ignore[arg-type]
        assert isinstance(reply, Reply)
        date = format_datetime(datetime.now(UTC) + timedelta(minutes=minutes), usegmt=True)
        return Reply(reply.status, reply.body, {**reply.headers, "Date": date})

    return later


@OFF
def test_it_is_warned_of_on_the_trail_and_on_the_page(
    approved: Make,
    pending: Make,
    target: ScriptedTarget,
    billing: Target,
    client: Client,
    ada: User,
    minutes: int,
) -> None:
    target.play(dated(apply, minutes))
    plan, other = approved(), pending(actions=[])
    assert send(plan).status == Status.COMMITTED
    assert Event.objects.get(action="target.alarm").details == {"alarm": "clock-skew"}
    now = health.of([billing.pk])[billing.pk]
    assert (now.skewed, now.well, now.failing) == (True, False, False)
    client.force_login(ada)
    page = client.get(f"/plans/billing/{other.plan_id}/").text
    assert "billing is not well" in page
    assert "which is too far" in page


@OFF
def test_a_dead_plan_is_dead_whatever_the_target_believes(
    approved: Make, pending: Make, target: ScriptedTarget, ada: User, minutes: int
) -> None:
    """To a clock that is behind it would be alive for two minutes more."""
    target.play(dated(apply, minutes))
    send(approved())
    late = pending(decide_by=clock())
    with pytest.raises(PlanExpired):
        decide(ada, late.pk, Ballot("approve", "", late.digest))
    sent, unsent = len(target.commits), approved()
    Plan.objects.filter(pk=unsent.pk).update(decide_by=clock())
    assert send(unsent).status == Status.EXPIRED
    assert len(target.commits) == sent


def test_a_clock_that_is_ahead_says_too_late_and_it_is_planned_again(
    approved: Make, target: ScriptedTarget
) -> None:
    target.play(dated(answer(410, {"code": "plan-expired"}), 2))
    plan = send(approved())
    assert (fresh(plan).status, target.applications) == (Status.EXPIRED, [])
    assert Replan.objects.get(plan=plan).cause == "expired"
    assert Event.objects.get(action="target.alarm").details == {"alarm": "clock-skew"}

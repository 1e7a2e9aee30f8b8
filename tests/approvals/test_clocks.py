"""One clock decides: PostgreSQL's, after the lock (C-1, C-2, FM-35, FM-36)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from django.contrib.auth.models import User
from django.utils import timezone

from approvals.decisions import Ballot, decide
from plans import clock as clocks
from plans import expiry
from plans.clock import clock
from plans.committing import claim_attempt
from plans.errors import PlanExpired
from plans.models import Plan
from plans.status import Status

type Make = Callable[..., Plan]
ROOT = Path(__file__).resolve().parents[2]
DECIDING = (
    "plans/lifecycle.py",
    "plans/queueing.py",
    "plans/expiry.py",
    "plans/sending.py",
    "plans/committing.py",
    "plans/recording.py",
    "plans/resolving.py",
    "plans/reading.py",
    "plans/sweeper.py",
    "plans/verification.py",
    "plans/replanning.py",
    "plans/enrolment.py",
    "plans/abandonment.py",
    "approvals/decisions.py",
    "approvals/oversight.py",
)


@pytest.mark.fm(35)
@pytest.mark.django_db
@pytest.mark.parametrize("minutes", [10, -10])
def test_the_clock_of_the_app_changes_no_decision(make_plan: Make, ada: User, minutes: int) -> None:
    """FM-35: alive stays alive, and dead stays dead."""
    alive, dead = make_plan(), make_plan(decide_by=clock())
    with time_machine.travel(timezone.now() + timedelta(minutes=minutes)):
        for plan in (alive, dead):
            expiry.expire(plan.pk)
        approved = decide(ada, alive.pk, Ballot("approve", "", alive.digest))
        with pytest.raises(PlanExpired):
            decide(ada, dead.pk, Ballot("approve", "", dead.digest))
    assert (approved.status, Plan.objects.get(pk=dead.pk).status) == ("approved", "expired")
    assert approved.approved_at is not None
    assert abs(approved.approved_at - clock()) < timedelta(minutes=1)


@pytest.mark.django_db
def test_expired_is_for_ever(make_plan: Make, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """FM-36: PostgreSQL's own clock may step back an hour."""
    plan = make_plan(decide_by=clock())
    expiry.expire(plan.pk)
    earlier = clock() - timedelta(hours=1)
    for module in ("approvals.decisions", "plans.expiry", "plans.committing"):
        monkeypatch.setattr(f"{module}.clock", lambda: earlier)
    with pytest.raises(PlanExpired):
        decide(ada, plan.pk, Ballot("approve", "", plan.digest))
    assert claim_attempt(plan.pk) is None
    assert Plan.objects.get().status == Status.EXPIRED


@pytest.mark.parametrize("path", DECIDING)
def test_what_decides_asks_no_other_clock(path: str) -> None:
    text = (ROOT / path).read_text("utf-8")
    for other in ("timezone.now", "datetime.now", "utcnow", "time.time(", "Now("):
        assert other not in text


def test_the_clock_is_no_transactions_start() -> None:
    """B-3: `now()` stands still while a lock is waited for."""
    text = Path(clocks.__file__).read_text("utf-8")
    assert "SELECT clock_timestamp()" in text

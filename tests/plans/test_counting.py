"""Counters fold the trail: nothing missed, nothing twice, never back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction

from audit import actors
from audit.actions import Action
from audit.models import Era, Event
from audit.recording import Subject, record
from plans import counting
from plans.clock import clock
from plans.models import CountedUpTo, Plan
from plans.status import Status
from tests.faults.scripted_target import ScriptedTarget
from tests.plans.engine import send
from tests.plans.story import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def say(action: Action = Action.SIGNED_IN, target: str = "", **details: object) -> None:
    with transaction.atomic():
        record(action, actors.CLOCK, Subject(target=target), details)


def values() -> dict[tuple[str, str, str, str], int]:
    return {
        (action, word, target, status): value
        for action, word, target, status, value, _ in counting.counted()
    }


def test_the_same_counts_once() -> None:
    for outcome in ("applied", "applied", "unknown"):
        say(Action.ATTEMPT_CLOSED, "billing", outcome=outcome)
    assert counting.count_all() == 3
    assert counting.count_all() == 0
    say(Action.ATTEMPT_CLOSED, "billing", outcome="applied")
    assert counting.count_all() == 1
    assert values() == {
        ("attempt.closed", "applied", "billing", ""): 3,
        ("attempt.closed", "unknown", "billing", ""): 1,
    }


def test_pages_are_walked_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(7):
        say()
    assert [counting.count_page(3) for _ in range(4)] == [3, 3, 1, 0]
    assert values() == {("person.signed_in", "", "", ""): 7}


def test_a_transaction_that_commits_late_is_not_missed() -> None:
    """Its number is smaller than one that is there already: both wait for it."""
    written, go = threading.Event(), threading.Event()

    def late() -> None:
        with transaction.atomic():
            record(Action.SIGNED_IN, actors.CLOCK, Subject())
            written.set()
            go.wait(10)

    def early() -> tuple[int, int]:
        written.wait(10)
        say()
        before = counting.count_all()
        go.set()
        return before, 0

    results = at_once([late, early])
    assert results[1] == (0, 0)
    assert counting.count_all() == 2
    assert values() == {("person.signed_in", "", "", ""): 2}


def test_eight_processes_count_once() -> None:
    for _ in range(20):
        say()
    counts = at_once([partial(counting.count_page, 5)] * 8)
    assert not [count for count in counts if isinstance(count, Exception)]
    while counting.count_page():
        pass
    assert values() == {("person.signed_in", "", "", ""): 20}


def test_a_new_era_is_counted_after_the_old_one() -> None:
    """After a restore transaction numbers begin again: rows of both eras count."""
    say()
    old = Event.objects.get()
    Era.objects.create(number=2, reason="restored")
    Event.objects.bulk_create(
        [
            Event(
                action="api_key.created",
                actor_kind="system",
                actor_id="x",
                actor_label="x",
                era=1,
                xid=old.xid + 1_000_000_000,
            ),
            Event(
                action="api_key.revoked",
                actor_kind="system",
                actor_id="x",
                actor_label="x",
                era=2,
                xid=3,
            ),
        ]
    )
    assert counting.count_page() == 2
    assert counting.count_page() == 1
    assert counting.count_page() == 0
    assert {key[0] for key in values()} == {
        "person.signed_in",
        "api_key.created",
        "api_key.revoked",
    }
    assert CountedUpTo.objects.get().era == 2


def test_a_plan_is_counted_at_every_status_and_its_wait_measured(
    approved: Callable[..., Plan], target: ScriptedTarget
) -> None:
    plan = approved()
    Plan.objects.filter(pk=plan.pk).update(approved_at=clock() - timedelta(seconds=2))
    assert send(plan).status == Status.COMMITTED
    counting.count_all()
    counted = values()
    for key in (
        ("decision.recorded", "approve", "billing", ""),
        ("plan.approved", "", "billing", "approved"),
        ("attempt.started", "", "billing", "committing"),
        ("attempt.closed", "applied", "billing", ""),
        ("plan.committed", "", "billing", "committed"),
        ("approve_to_send", "2.5", "billing", ""),
    ):
        assert counted[key] == 1
    (waited,) = [row[5] for row in counting.counted() if row[0] == "approve_to_send"]
    assert 2 <= waited < 2.5


@pytest.mark.parametrize(
    ("seconds", "bound"), [(0, "0.1"), (0.3, "0.5"), (299, "300.0"), (400, "+Inf"), (-5, "0.1")]
)
def test_waits_fall_into_fixed_buckets(
    make_plan: Callable[..., Plan], seconds: float, bound: str
) -> None:
    now = clock()
    sent = now + timedelta(seconds=seconds)
    plan = make_plan(Status.COMMITTED, approved_at=now, first_sent_at=sent)
    with transaction.atomic():
        for number in (1, 2):
            record(Action.ATTEMPT_STARTED, actors.COMMITTER, plan.subject(), {"number": number})
    counting.count_all()
    assert values()["approve_to_send", bound, "billing", ""] == 1


def test_counts_are_only_ever_added() -> None:
    say()
    counting.count_all()
    before = values()
    Plan.objects.all().delete()
    say()
    counting.count_all()
    assert all(values()[key] >= value for key, value in before.items())

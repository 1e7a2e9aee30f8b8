"""What became of my decisions: the strip above the plan (B-8)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals import queue
from approvals.models import Decision
from audit import actors
from plans import emergency
from plans.clock import clock
from plans.models import Plan
from plans.status import Status

type MakePlan = Callable[..., Plan]


@pytest.fixture
def approve(make_plan: MakePlan, ada: User) -> Callable[..., Decision]:
    """A plan with these columns, approved by Ada."""

    def make(verdict: str = "approve", **columns: Any) -> Decision:
        plan = make_plan(**columns)
        return Decision.objects.create(
            plan=plan, person=ada, round=1, verdict=verdict, shown_digest=plan.digest
        )

    return make


@pytest.mark.parametrize(
    ("status", "words", "dismissable"),
    [
        (Status.APPROVED, "about to be sent", False),
        (Status.COMMITTING, "sent to billing, 38 ms after approval", False),
        (Status.UNKNOWN, "not confirmed yet, retrying with the same key", True),
        (Status.COMMITTED, "committed, 1.2 s after approval", False),
        (Status.CONFLICTED, "the world moved", True),
        (Status.FAILED, "billing refused it", True),
        (Status.UNRESOLVED, "look at billing", True),
        (Status.EXPIRED, "its time ran out", True),
        (Status.STALE, "something wrote to it first", True),
    ],
)
def test_each_outcome_has_its_words(
    approve: Callable[..., Decision],
    ada: User,
    status: Status,
    words: str,
    dismissable: bool,
) -> None:
    now = clock()
    approve(
        status=status,
        approved_at=now,
        first_sent_at=now + timedelta(milliseconds=38),
        closed_at=now + timedelta(milliseconds=1200),
    )
    (line,) = queue.tray(ada)
    assert words in line.sentence
    assert line.dismissable == dismissable


@pytest.mark.parametrize(
    ("verdict", "status", "words"),
    [
        ("approve", Status.PENDING, "approved, 1 of 2: not sent yet"),
        ("request_changes", Status.CHANGES_REQUESTED, "changes requested: the agent is asked"),
        ("reject", Status.REJECTED, "rejected, nothing is applied"),
    ],
)
def test_what_waits_for_others_or_is_done_with_is_said_for_a_minute(
    approve: Callable[..., Decision], ada: User, verdict: str, status: Status, words: str
) -> None:
    decision = approve(verdict=verdict, status=status, approvals_given=1)
    Plan.objects.update(approvals_required=2)
    (line,) = queue.tray(ada)
    assert words in line.sentence
    Decision.objects.filter(pk=decision.pk).update(decided_at=clock() - timedelta(seconds=61))
    assert queue.tray(ada) == []


def test_changes_that_were_made_name_their_revision(
    approve: Callable[..., Decision], ada: User, make_plan: MakePlan
) -> None:
    old = approve(verdict="request_changes", status=Status.CHANGES_REQUESTED).plan
    make_plan(intent=old.intent, revision=2, replaces=old)
    assert queue.tray(ada)[0].sentence == "changes requested: revision 2 took its place"


def test_an_approval_that_was_taken_back_is_not_in_it(
    approve: Callable[..., Decision], ada: User
) -> None:
    decision = approve(status=Status.PENDING)
    Decision.objects.filter(pk=decision.pk).update(withdrawn_at=clock())
    assert queue.tray(ada) == []


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"status": Status.APPROVED}, "approved, waits: sending is stopped"),
        ({"status": Status.COMMITTING}, "approved, waits: sending is stopped"),
        ({"status": Status.UNKNOWN}, "not retried while sending is stopped"),
        ({"status": Status.COMMITTING, "first_sent_at": clock}, "sent to billing"),
        ({"status": Status.COMMITTED, "closed_at": clock}, "committed"),
    ],
)
def test_what_the_emergency_stop_holds_says_that_it_waits(
    approve: Callable[..., Decision], ada: User, columns: dict[str, Any], words: str
) -> None:
    values = {name: value() if callable(value) else value for name, value in columns.items()}
    approve(**values)
    emergency.stop("The agent runs wild.", actor=actors.OPERATOR)
    assert words in queue.tray(ada)[0].sentence


def test_the_strip_is_one_query(approve: Callable[..., Decision], ada: User) -> None:
    for status in (Status.APPROVED, Status.UNKNOWN, Status.PENDING):
        approve(status=status)
    emergency.stop("Why.", actor=actors.OPERATOR)
    with CaptureQueriesContext(connection) as captured:
        assert len(queue.tray(ada)) == 3
    assert len(captured) == 1


@pytest.mark.parametrize("status", [Status.REJECTED, Status.SUPERSEDED])
def test_what_went_no_further_is_not_in_it(
    approve: Callable[..., Decision], ada: User, status: Status
) -> None:
    approve(status=status)
    assert queue.tray(ada) == []


def test_a_committed_one_leaves_after_a_minute(approve: Callable[..., Decision], ada: User) -> None:
    approve(status=Status.COMMITTED, closed_at=clock() - timedelta(seconds=61))
    assert queue.tray(ada) == []


def test_a_rejection_of_what_went_on_has_no_progress(
    approve: Callable[..., Decision], ada: User
) -> None:
    approve(verdict="reject", status=Status.FAILED)
    assert queue.tray(ada) == []


def test_it_is_mine_alone(approve: Callable[..., Decision], grace: User) -> None:
    approve(status=Status.UNKNOWN)
    assert queue.tray(grace) == []


def test_an_earlier_round_is_over(approve: Callable[..., Decision], ada: User) -> None:
    approve(status=Status.APPROVED, round=2)
    assert queue.tray(ada) == []


def test_a_line_is_put_away_by_a_post(
    client: Client, approve: Callable[..., Decision], ada: User
) -> None:
    decision = approve(status=Status.CONFLICTED)
    client.force_login(ada)
    url = f"/decisions/{decision.pk}/dismissal/"
    assert client.get(url).status_code == 405
    assert len(queue.tray(ada)) == 1
    answer = client.post(url, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert queue.tray(ada) == []


def test_nobody_puts_away_what_is_not_theirs(
    client: Client, approve: Callable[..., Decision], grace: User
) -> None:
    decision = approve(status=Status.CONFLICTED)
    client.force_login(grace)
    assert client.post(f"/decisions/{decision.pk}/dismissal/").status_code == 404
    assert not Decision.objects.get(pk=decision.pk).dismissed


def test_what_needs_a_person_comes_first(approve: Callable[..., Decision], ada: User) -> None:
    conflicted, _ = approve(status=Status.CONFLICTED), approve(status=Status.UNKNOWN)
    approve(status=Status.APPROVED)
    lines = queue.tray(ada)
    assert [line.dismissable for line in lines] == [True, True, False]
    assert lines[1].decision == conflicted.pk


def test_the_strip_has_its_place_before_there_is_anything_to_say(client: Client, ada: User) -> None:
    client.force_login(ada)
    text = client.get("/decisions/").text
    assert "What becomes of your decisions is told here." in text
    assert " hidden" not in text


def test_a_conflict_names_the_revision_that_took_its_place(
    approve: Callable[..., Decision], ada: User, make_plan: MakePlan
) -> None:
    conflicted = approve(status=Status.CONFLICTED).plan
    assert "it is being planned again" in queue.tray(ada)[0].sentence
    make_plan(intent=conflicted.intent, revision=2, replaces=conflicted)
    assert "revision 2 took its place" in queue.tray(ada)[0].sentence

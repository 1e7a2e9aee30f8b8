"""Unknown, then the truth from the plan's own state, or a person (T-8, T-10)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from audit import actors
from audit.models import Event
from plans import committing
from plans.clock import clock
from plans.errors import InvalidNote, NoteRequired, NotUnresolved
from plans.models import Plan, Replan, Target
from plans.reading import read_plan
from plans.resolving import checked, due, read_now, resolve
from plans.status import Status
from tests.faults.scripted_target import ScriptedTarget, Step, answer, drop
from tests.plans.engine import actions, fresh, outcomes, read, send, soon

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("calls_in_the_tests_transaction")]
type Make = Callable[..., Plan]


@pytest.fixture
def unknown(approved: Make, target: ScriptedTarget) -> Plan:
    """One attempt, no answer; whether it was applied only the target knows."""
    target.play(drop())
    plan = send(approved())
    assert plan.status == Status.UNKNOWN
    target.reads.clear()
    return plan


@pytest.fixture
def unresolved(unknown: Plan) -> Plan:
    Plan.objects.update(unknown_since=clock() - timedelta(seconds=900))
    plan = read(unknown)
    assert plan.status == Status.UNRESOLVED
    return plan


@pytest.mark.parametrize(
    ("says", "status"),
    [
        ("applied", Status.COMMITTED),
        ("not_applied", Status.CONFLICTED),
        ("expired", Status.EXPIRED),
        ("partly_applied", Status.UNRESOLVED),
        ("in_progress", Status.UNKNOWN),
        ("open", Status.UNKNOWN),
        ("some-new-word", Status.UNKNOWN),
        (answer(500), Status.UNKNOWN),
        (answer(200, {"plan_id": "another", "status": "applied"}), Status.UNKNOWN),
        (answer(200, b"<html>"), Status.UNKNOWN),
        (answer(301, Location="/login"), Status.UNKNOWN),
        (drop(), Status.UNKNOWN),
    ],
)
def test_the_targets_word_about_the_plan(
    unknown: Plan, target: ScriptedTarget, says: str | Step, status: Status
) -> None:
    """T-8, row by row."""
    target.says = says
    plan = read(unknown)
    assert (plan.status, len(target.commits)) == (status, 1)
    assert Replan.objects.exists() == (status in (Status.CONFLICTED, Status.EXPIRED))
    assert plan.last_reading["kind"]
    assert "state.read" in actions(plan)
    if status == Status.CONFLICTED:
        assert plan.conflict["changed"] is None


@pytest.mark.parametrize(
    ("readable", "past_expiry", "status"),
    [
        (False, False, Status.UNKNOWN),
        (False, True, Status.UNKNOWN),
        (True, False, Status.CONFLICTED),
        (True, True, Status.EXPIRED),
    ],
)
def test_a_missing_plan_proves_something_only_where_consumed_plans_are_kept(
    unknown: Plan, target: ScriptedTarget, readable: bool, past_expiry: bool, status: Status
) -> None:
    Target.objects.update(consumed_plans_readable=readable)
    if past_expiry:
        Plan.objects.update(expires_at=clock())
    target.says = answer(404)
    assert read(unknown).status == status


@pytest.mark.parametrize("says", ["open", answer(503)])
def test_what_proves_nothing_permits_the_retry(
    unknown: Plan, target: ScriptedTarget, says: str | Step
) -> None:
    target.says = says
    plan = read(unknown)
    assert plan.next_attempt_at is not None
    target.says = None
    plan = send(plan)
    assert (plan.status, target.applications) == (Status.COMMITTED, [plan.plan_id])


def test_in_progress_puts_the_retry_off_until_it_was_read_again(
    unknown: Plan, target: ScriptedTarget
) -> None:
    target.says = "in_progress"
    for _ in range(3):
        plan = read(unknown)
        now = clock()
        assert plan.next_attempt_at is not None
        assert plan.next_attempt_at > now + timedelta(seconds=3)
        assert plan.next_read_at is not None
        assert plan.next_read_at < now + timedelta(seconds=1.1)
    assert len(target.commits) == 1
    target.says = "not_applied"
    assert read(plan).status == Status.CONFLICTED


def test_an_event_tells_only_a_new_word(unknown: Plan, target: ScriptedTarget) -> None:
    for says in ("open", "open", "in_progress", "open"):
        target.says = says
        plan = read(unknown)
    told = Event.objects.filter(action="state.read").order_by("id")
    assert [event.details["kind"] for event in told] == ["open", "in_progress", "open"]
    assert plan.last_reading["kind"] == "open"


def test_reads_are_at_least_every_five_seconds(unknown: Plan, target: ScriptedTarget) -> None:
    """T-9; and a read is made by one, however many come for it (Q-1)."""
    soon(unknown)
    assert list(due()) == [unknown.pk]
    resolve(unknown.pk)
    resolve(unknown.pk)
    assert len(target.reads) == 1
    waits = fresh(unknown).next_read_at
    assert waits is not None
    assert timedelta(seconds=4) < waits - clock() <= timedelta(seconds=5)


def test_a_reading_finds_the_first_attempt_while_the_second_is_out(
    unknown: Plan, target: ScriptedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one's answer is late then, and changes nothing."""
    target.says = answer(200, {"plan_id": unknown.plan_id, "status": "applied", "result": {"n": 1}})

    def meanwhile(plan: Plan) -> object:
        claim = committing.claim_attempt(soon(unknown).pk)
        assert claim is not None
        return read_plan(plan)

    monkeypatch.setattr("plans.resolving.read_plan", meanwhile)
    plan = read(unknown)
    assert (plan.status, plan.result) == (Status.COMMITTED, {"n": 1})
    assert outcomes(plan) == ["unknown", "unknown"]
    assert actions(plan).count("plan.committed") == 1


def test_a_negative_reading_is_not_believed_while_an_attempt_is_out(
    unknown: Plan, target: ScriptedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    target.says = "not_applied"

    def meanwhile(plan: Plan) -> object:
        assert committing.claim_attempt(soon(unknown).pk) is not None
        return read_plan(plan)

    monkeypatch.setattr("plans.resolving.read_plan", meanwhile)
    assert read(unknown).status == Status.COMMITTING


# ── A person must look (T-10) ───────────────────────────────────────────────────────────────


def test_after_the_deadline_a_person_must_look(unresolved: Plan, target: ScriptedTarget) -> None:
    assert unresolved.token is not None
    assert (unresolved.next_attempt_at, unresolved.next_read_at) == (None, None)
    event = Event.objects.get(action="plan.unresolved")
    assert event.actor_id == "clock"
    assert send(unresolved).status == read(unresolved).status == Status.UNRESOLVED
    assert len(target.commits) == 1


def test_without_a_read_back_the_deadline_comes_all_the_same(
    approved: Make, target: ScriptedTarget
) -> None:
    Target.objects.update(plan_path="", idempotency=False, allow_unverified=True)
    target.play(drop())
    plan = send(approved())
    assert (plan.status, plan.next_attempt_at) == (Status.UNKNOWN, None)
    plan = read(plan)
    assert plan.unknown_since is not None
    assert plan.next_read_at == plan.unknown_since + timedelta(seconds=900)
    Plan.objects.update(unknown_since=clock() - timedelta(seconds=900))
    assert (read(plan).status, target.reads) == (Status.UNRESOLVED, [])


@pytest.mark.parametrize(
    ("applied", "status", "word"),
    [
        (True, Status.COMMITTED, "plan.checked_applied"),
        (False, Status.FAILED, "plan.checked_not_applied"),
    ],
)
def test_a_person_says_what_happened(
    unresolved: Plan, otto: User, applied: bool, status: Status, word: str
) -> None:
    note = " I looked at invoice 4412. "
    plan = checked(unresolved.pk, applied=applied, note=note, actor=actors.person(otto))
    assert fresh(plan).status == plan.status == status
    assert (fresh(plan).token, fresh(plan).stales_others) == (None, applied)
    event = Event.objects.get(action=word)
    assert (event.actor_kind, event.actor_label) == ("person", "otto")
    assert event.details == {"note": note.strip()}
    assert not Replan.objects.exists()
    with pytest.raises(NotUnresolved):
        checked(unresolved.pk, applied=not applied, note="no", actor=actors.person(otto))


@pytest.mark.parametrize(
    ("note", "problem"),
    [("", NoteRequired), (" \n", NoteRequired), ("x" * 4001, InvalidNote), ("\x00", InvalidNote)],
)
def test_a_finding_has_a_note(
    unresolved: Plan, otto: User, note: str, problem: type[Exception]
) -> None:
    with pytest.raises(problem):
        checked(unresolved.pk, applied=True, note=note, actor=actors.person(otto))
    assert fresh(unresolved).status == Status.UNRESOLVED


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.COMMITTED, Status.PENDING])
def test_nobody_settles_a_plan_that_is_not_unresolved(
    make_plan: Make, otto: User, status: Status
) -> None:
    plan = make_plan(status)
    with pytest.raises(NotUnresolved):
        checked(plan.pk, applied=True, note="seen", actor=actors.person(otto))


def test_a_person_can_have_it_read_and_nothing_moves(
    unresolved: Plan, target: ScriptedTarget
) -> None:
    target.says = "applied"
    reading = read_now(unresolved.pk)
    assert reading is not None
    assert reading.kind == "applied"
    plan = fresh(unresolved)
    assert (plan.status, plan.last_reading["kind"]) == (Status.UNRESOLVED, "applied")

"""One switch holds every send; two people let it go (SEC-30, T-3, T-13)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from audit import actors
from audit.actors import Actor
from audit.models import Event
from audit.sentences import sentence, tone
from plans import emergency, expiry
from plans.clock import clock
from plans.committing import claim_attempt
from plans.errors import InvalidNote, NotDecidable, NoteRequired, SecondPersonRequired
from plans.models import Attempt, EmergencyStop, Plan, Target
from plans.models.switches import STOP_LOCK
from plans.status import Status
from tests.faults.scripted_target import ScriptedTarget, drop
from tests.plans.engine import fresh, outcomes, read, send, soon
from tests.plans.story import at_once

type Make = Callable[..., Plan]

OTTO = Actor("person", "1", "otto")
GRACE = Actor("person", "2", "grace")
LEO = Actor("person", "3", "leo")
pytestmark = pytest.mark.django_db


def anybody(_actor: str) -> bool:
    return True


def words() -> list[str]:
    rows = Event.objects.filter(action__startswith="emergency.").order_by("id")
    return [str(sentence(event)) for event in rows]


# ── holding ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_an_approved_plan_waits_and_goes_when_released(
    approved: Make, target: ScriptedTarget
) -> None:
    plan = approved()
    emergency.stop("The agent runs wild.", actor=OTTO)
    plan = send(plan)
    assert (plan.status, target.commits, outcomes(plan)) == (Status.APPROVED, [], [])
    assert plan.next_attempt_at is not None
    assert clock() < plan.next_attempt_at <= clock() + timedelta(seconds=5)
    emergency.ask_release("It is switched off.", actor=OTTO)
    emergency.release(1, actor=GRACE, may_release=anybody)
    assert send(plan).status == Status.COMMITTED


@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_a_held_plan_expires_at_its_time(approved: Make, target: ScriptedTarget) -> None:
    plan = approved()
    emergency.stop("Wait.", actor=OTTO)
    send(plan)
    late = clock()
    Plan.objects.filter(pk=plan.pk).update(decide_by=late, expires_at=late)
    expiry.expire(plan.pk)
    assert (fresh(plan).status, target.commits) == (Status.EXPIRED, [])


@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_a_held_plan_is_looked_at_again_no_later_than_its_end(approved: Make) -> None:
    plan = approved()
    emergency.stop("Wait.", actor=OTTO)
    end = clock() + timedelta(seconds=2)
    Plan.objects.filter(pk=plan.pk).update(decide_by=end)
    due = send(plan).next_attempt_at
    assert due is not None
    assert due <= end + timedelta(milliseconds=1)


@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_resends_are_held_while_reads_go_on(approved: Make, target: ScriptedTarget) -> None:
    """T-13."""
    target.play(drop())
    plan = send(approved())
    assert plan.status == Status.UNKNOWN
    sent, looked = len(target.commits), len(target.reads)
    emergency.stop("Wait.", actor=OTTO)
    Plan.objects.filter(pk=plan.pk).update(decide_by=clock())
    plan = send(plan)
    assert (plan.status, len(target.commits), outcomes(plan)) == (
        Status.UNKNOWN,
        sent,
        ["unknown"],
    )
    assert plan.next_attempt_at is not None
    assert plan.next_attempt_at > clock() + timedelta(seconds=3)
    read(plan)
    assert len(target.reads) > looked


@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_what_is_on_its_way_comes_to_its_end(approved: Make) -> None:
    claim = claim_attempt(soon(approved()).pk)
    assert claim is not None
    assert emergency.stop("Wait.", actor=OTTO) == 1
    assert Attempt.objects.get().outcome == "open"


@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_a_stop_costs_a_claim_one_query(
    approved: Make, django_assert_num_queries: Callable[..., object]
) -> None:
    with django_assert_num_queries(1):  # type: ignore[attr-defined]  # a context manager
        assert emergency.reason_to_hold() is None


# ── racing ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.django_db(transaction=True)
def test_no_send_begins_after_the_stop_has_answered(
    approved: Make, quick_billing: Target, target: ScriptedTarget
) -> None:
    """Claims in four threads against one stop: each is before it, or held."""
    plans = [approved() for _ in range(24)]
    Plan.objects.update(next_attempt_at=clock())
    shares = [plans[number::4] for number in range(4)]
    began = threading.Event()
    answered_at: list[object] = []

    def claim(mine: list[Plan]) -> int:
        taken = 0
        for plan in mine:
            taken += claim_attempt(plan.pk) is not None
            began.set()
        return taken

    def stop() -> int:
        began.wait(10)
        emergency.stop("Now.", actor=OTTO)
        answered_at.append(clock())
        return Attempt.objects.count()

    jobs: list[Callable[[], int]] = [*(partial(claim, mine) for mine in shares), stop]
    *taken, at_the_stop = [number for number in at_once(jobs) if isinstance(number, int)]
    assert len(taken) == 4
    assert sum(taken) == Attempt.objects.count() == at_the_stop
    assert not Attempt.objects.filter(started_at__gt=answered_at[0]).exists()


@pytest.mark.django_db(transaction=True)
def test_a_stop_waits_for_the_claim_that_asked_before_it(approved: Make) -> None:
    """The claim has looked and is not committed: the stop does not answer before it is."""
    approved()
    asked, go = threading.Event(), threading.Event()
    order: list[str] = []

    def claim() -> None:
        with transaction.atomic():
            assert emergency.reason_to_hold() is None
            asked.set()
            go.wait(10)
            order.append("claimed")

    def stop() -> None:
        asked.wait(10)
        threading.Timer(0.3, go.set).start()
        emergency.stop("Now.", actor=OTTO)
        order.append("stopped")

    at_once([claim, stop])
    assert order == ["claimed", "stopped"]


@pytest.mark.django_db(transaction=True)
def test_a_claim_that_hangs_does_not_hold_up_the_stop(
    approved: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emergency, "SETTLE_MILLISECONDS", 200)
    asked, stopped = threading.Event(), threading.Event()

    def claim() -> None:
        with transaction.atomic():
            emergency.reason_to_hold()
            asked.set()
            stopped.wait(10)

    def stop() -> float:
        asked.wait(10)
        began = time.monotonic()
        emergency.stop("Now.", actor=OTTO)
        stopped.set()
        return time.monotonic() - began

    _, seconds = at_once([claim, stop])
    assert isinstance(seconds, float)
    assert seconds < 2
    assert emergency.reason_to_hold() == "Now."


@pytest.mark.django_db(transaction=True)
def test_two_people_who_confirm_at_once_release_once() -> None:
    emergency.stop("Now.", actor=OTTO)
    emergency.ask_release("Over.", actor=OTTO)

    def confirm(actor: Actor) -> Callable[[], None]:
        return lambda: emergency.release(1, actor=actor, may_release=anybody)

    results = at_once([confirm(GRACE), confirm(LEO), confirm(OTTO)])
    assert results.count(None) == 1
    assert Event.objects.filter(action="emergency.released").count() == 1


# ── releasing ────────────────────────────────────────────────────────────────────────────────


def test_the_same_person_never_releases_alone() -> None:
    emergency.stop("Now.", actor=OTTO)
    assert emergency.ask_release("Over.", actor=OTTO)
    with pytest.raises(SecondPersonRequired):
        emergency.release(1, actor=OTTO, may_release=anybody)
    assert emergency.ask_release("Over!", actor=GRACE) is False
    with pytest.raises(SecondPersonRequired):
        emergency.release(1, actor=OTTO, may_release=anybody)
    emergency.release(1, actor=GRACE, may_release=anybody)
    assert emergency.current() is None
    assert words() == [
        "otto stopped all sending: Now.",
        "otto asked to let commits be sent again: Over.",
        "grace lets commits be sent again, as otto had asked: Over.",
    ]


def test_nothing_is_released_that_nobody_asked_for() -> None:
    with pytest.raises(NotDecidable):
        emergency.release(0, actor=GRACE, may_release=anybody)
    with pytest.raises(NotDecidable):
        emergency.ask_release("Over.", actor=OTTO)
    emergency.stop("Now.", actor=OTTO)
    with pytest.raises(NotDecidable):
        emergency.release(1, actor=GRACE, may_release=anybody)


def test_a_wish_is_old_after_a_quarter_of_an_hour() -> None:
    emergency.stop("Now.", actor=OTTO)
    emergency.ask_release("Over.", actor=OTTO)
    EmergencyStop.objects.update(release_asked_at=clock() - timedelta(minutes=15))
    with pytest.raises(NotDecidable):
        emergency.release(1, actor=GRACE, may_release=anybody)
    assert emergency.ask_release("Really.", actor=GRACE)
    emergency.release(1, actor=OTTO, may_release=anybody)


def test_who_may_not_any_more_has_not_asked() -> None:
    emergency.stop("Now.", actor=OTTO)
    emergency.ask_release("Over.", actor=OTTO)
    with pytest.raises(NotDecidable):
        emergency.release(1, actor=GRACE, may_release=lambda pk: pk != OTTO.id)
    assert emergency.reason_to_hold() == "Now."


def test_a_second_stop_ends_the_wish_to_release() -> None:
    emergency.stop("Now.", actor=OTTO)
    since = EmergencyStop.objects.get().stopped_at
    emergency.ask_release("Over.", actor=OTTO)
    emergency.stop("It goes on.", actor=LEO)
    stop = EmergencyStop.objects.get()
    assert (stop.number, stop.stopped_at, stop.reason) == (2, since, "It goes on.")
    for number in (1, 2):
        with pytest.raises(NotDecidable):
            emergency.release(number, actor=GRACE, may_release=anybody)
    emergency.ask_release("Now it is.", actor=OTTO)
    with pytest.raises(NotDecidable):
        emergency.release(1, actor=GRACE, may_release=anybody)
    emergency.release(2, actor=GRACE, may_release=anybody)


@pytest.mark.parametrize(
    ("reason", "refusal"),
    [("", NoteRequired), ("  \n", NoteRequired), ("x" * 501, InvalidNote), ("a\x00", InvalidNote)],
)
def test_a_reason_is_needed(reason: str, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        emergency.stop(reason, actor=OTTO)
    emergency.stop("Now.", actor=OTTO)
    with pytest.raises(refusal):
        emergency.ask_release(reason, actor=OTTO)
    with pytest.raises(refusal):
        emergency.break_glass(reason, actor=actors.OPERATOR)
    assert emergency.current() is not None


# ── the terminal ─────────────────────────────────────────────────────────────────────────────


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("emergency_stop", *arguments, stdout=out)
    return out.getvalue()


def test_the_terminal_stops_tells_and_breaks_the_glass() -> None:
    assert run() == "Sending.\n"
    assert "On their way already: 0" in run("The agent runs wild.")
    assert "by an operator at the terminal: The agent runs wild." in run()
    assert run("--release", "--break-glass", "Nobody else is awake.") == "Sending again.\n"
    assert run("--release", "--break-glass", "Again.") == "Nothing was stopped.\n"
    assert words()[-1] == (
        "An operator at the terminal released the emergency stop alone: Nobody else is awake."
    )
    assert tone(Event.objects.get(action="emergency.glass_broken")) == "bad"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--release"],
        ["--break-glass", "Because."],
        ["Stop.", "--release", "--break-glass", "No."],
        ["  "],
        ["--release", "--break-glass", " "],
    ],
)
def test_the_terminal_does_nothing_by_halves(arguments: list[str]) -> None:
    emergency.stop("Now.", actor=OTTO)
    with pytest.raises(CommandError):
        run(*arguments)
    assert words() == ["otto stopped all sending: Now."]


def test_the_lock_of_the_switch_is_the_same_in_the_database() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        emergency.reason_to_hold()
        cursor.execute(
            "SELECT (classid::bigint << 32) + objid::bigint FROM pg_locks"
            " WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )
        assert (STOP_LOCK,) in cursor.fetchall()

"""Two people let the sends go, or the terminal does (SEC-30)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from audit import actors
from audit.actors import Actor
from audit.models import Event
from audit.sentences import tone
from plans import emergency
from plans.clock import clock
from plans.errors import InvalidNote, NotDecidable, NoteRequired, SecondPersonRequired
from plans.models import EmergencyStop
from tests.plans.stopping import GRACE, LEO, OTTO, anybody, words
from tests.plans.story import at_once

pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
def test_two_people_who_confirm_at_once_release_once() -> None:
    emergency.stop("Now.", actor=OTTO)
    emergency.ask_release("Over.", actor=OTTO)

    def confirm(actor: Actor) -> Callable[[], None]:
        return lambda: emergency.release(1, actor=actor, may_release=anybody)

    results = at_once([confirm(GRACE), confirm(LEO), confirm(OTTO)])
    assert results.count(None) == 1
    assert Event.objects.filter(action="emergency.released").count() == 1


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

"""Who lives says so; who is silent is missed (Q-2)."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest
from django.db import DatabaseError

from plans import heartbeats
from plans.clock import clock
from plans.heartbeats import SWEEPER, Pulse, beat, keep_beating, silences
from plans.management.commands.sweep import Sweeper
from plans.models import Heartbeat

pytestmark = pytest.mark.django_db


def test_the_latest_process_of_a_part_counts() -> None:
    assert silences() == {}
    beat([SWEEPER, "worker:commit"])
    Heartbeat.objects.create(part=SWEEPER, process="old:1", beat_at=clock() - timedelta(minutes=5))
    silent = silences()
    assert silent.keys() == {SWEEPER, "worker:commit"}
    assert 0 <= silent[SWEEPER] < 2


def test_what_was_replaced_is_forgotten_and_the_last_one_is_not() -> None:
    old = clock() - timedelta(hours=2)
    Heartbeat.objects.create(part=SWEEPER, process="old:1", beat_at=old)
    Heartbeat.objects.create(part="worker:default", process="old:2", beat_at=old)
    beat([SWEEPER])
    beat([SWEEPER])
    assert sorted(Heartbeat.objects.values_list("part", flat=True)) == [SWEEPER, "worker:default"]
    assert silences()["worker:default"] > 7_000


def test_a_pulse_beats_when_it_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    beats: list[object] = []
    monkeypatch.setattr(heartbeats, "beat", beats.append)
    pulse = Pulse(SWEEPER)
    for second in (0.1, 1, 2, 3.2, 4, 6.3):
        monkeypatch.setattr(time, "monotonic", lambda now=second: now)
        pulse.beat_if_due()
    assert beats == [(SWEEPER,)] * 3


@pytest.mark.django_db(transaction=True)
def test_the_sweeper_beats_while_it_looks() -> None:
    sweeping = Sweeper(1)
    try:
        sweeping.look()
    finally:
        sweeping.finish()
    assert silences()[SWEEPER] < 2


@pytest.mark.django_db(transaction=True)
def test_a_worker_beats_in_a_thread_until_it_is_told_to_stop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A database that is away costs a line in the log, not the thread."""
    stop, beaten, tries = threading.Event(), threading.Event(), [1, 2]

    def beat_at_the_third(parts: list[str]) -> None:
        if tries:
            tries.pop()
            raise DatabaseError("away")
        beat(parts)
        beaten.set()

    monkeypatch.setattr(heartbeats, "EVERY_SECONDS", 0.01)
    monkeypatch.setattr(heartbeats, "beat", beat_at_the_third)
    thread = threading.Thread(target=keep_beating, args=(["worker:commit"], stop))
    thread.start()
    assert beaten.wait(10)
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
    assert caplog.text.count("heartbeat.not_written") == 2
    assert silences().keys() == {"worker:commit"}

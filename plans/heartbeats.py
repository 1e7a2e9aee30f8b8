"""Processes that work in the background say that they live, every few seconds (Q-2)."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Sequence
from typing import Final

import structlog
from django.db import DatabaseError, InterfaceError, connection

log = structlog.get_logger(__name__)

SWEEPER: Final = "sweeper"
EVERY_SECONDS: Final = 3.0

_BEAT: Final = """
    INSERT INTO plans_heartbeat (part, process, beat_at)
    SELECT part, %s, clock_timestamp() FROM unnest(%s::text[]) AS part
    ON CONFLICT (part, process) DO UPDATE SET beat_at = excluded.beat_at
"""
# A process that was replaced is forgotten after an hour; the last one of its kind is not.
_BURY: Final = """
    DELETE FROM plans_heartbeat AS old
    WHERE beat_at < clock_timestamp() - interval '1 hour' AND EXISTS (
        SELECT FROM plans_heartbeat AS new WHERE new.part = old.part AND new.beat_at > old.beat_at
    )
"""
_SILENCES: Final = """
    SELECT part, greatest(0, extract(epoch FROM clock_timestamp() - max(beat_at)))::float8
    FROM plans_heartbeat GROUP BY part ORDER BY part
"""


def worker(queue: str) -> str:
    """The name of the part that works on a queue."""
    return f"worker:{queue}"[:100]


def beat(parts: Sequence[str]) -> None:
    """This process lives, now. Raises what the database raises."""
    with connection.cursor() as cursor:
        cursor.execute(_BEAT, [f"{socket.gethostname()}:{os.getpid()}"[:200], list(parts)])
        cursor.execute(_BURY)


def silences() -> dict[str, float]:
    """Seconds since a process of each part was heard last; a part that never was is missing."""
    with connection.cursor() as cursor:
        cursor.execute(_SILENCES)
        return dict(cursor.fetchall())


class Pulse:
    """Beats when it is due: for a loop that shows by this that it still turns."""

    def __init__(self, *parts: str) -> None:
        self._parts = parts
        self._due = 0.0

    def beat_if_due(self) -> None:
        if time.monotonic() >= self._due:
            beat(self._parts)
            self._due = time.monotonic() + EVERY_SECONDS


def keep_beating(parts: Sequence[str], stop: threading.Event) -> None:
    """Beat until told to stop: a thread of its own. A database that is away is waited for."""
    while True:
        try:
            beat(parts)
        except (DatabaseError, InterfaceError) as fault:
            log.warning("heartbeat.not_written", fault=type(fault).__name__)
        finally:
            connection.close()
        if stop.wait(EVERY_SECONDS):
            return

"""`manage.py sweep`: does what time makes due, twice a second, with or without Redis (Q-2)."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import structlog
from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandParser
from django.db import InterfaceError, InternalError, OperationalError, close_old_connections

from audit import eras
from plans.heartbeats import SWEEPER, Pulse
from plans.sweeper import EVERY_SECOND, Lane, Work, due_work

log = structlog.get_logger(__name__)

# The last: a server that turned read-only, as an old primary does.
AWAY: Final = (OperationalError, InterfaceError, InternalError)
ROW_THREADS: Final = 2
ROUND_SECONDS: Final = 1.0


class Command(BaseCommand):
    help = "Expire, commit, verify, re-plan and resolve whatever is due; runs until stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--period", type=float, default=0.5, help="seconds between looks")
        parser.add_argument("--once", action="store_true", help="one look, then exit")
        parser.add_argument(
            "--threads", type=int, default=6, help="calls to targets at once, per kind of call"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        if not options["once"]:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: stop.set())
        self.refuse_unsafe_start()
        begin_era_after_restore()
        sweeper = Sweeper(options["threads"])
        try:
            while True:
                began = time.monotonic()
                sweeper.look()
                left = max(0.0, began + options["period"] - time.monotonic())
                if options["once"] or stop.wait(left):
                    return
        finally:
            sweeper.finish(drop_waiting=not options["once"])

    def refuse_unsafe_start(self) -> None:
        """Where commits may be forgotten nothing is sent (FM-33); a database away is waited for."""
        try:
            self.check(tags=[Tags.security, Tags.database], databases=["default"])
        except AWAY as fault:
            log.warning("sweep.unchecked", fault=type(fault).__name__)


def begin_era_after_restore() -> None:
    """Before anything is written; while the database is away, the first sealing does it (L-2)."""
    try:
        eras.check()
    except AWAY as fault:
        log.warning("sweep.database_away", fault=type(fault).__name__)
    finally:
        close_old_connections()


class Sweeper:
    """Looks at the clock and hands out what is due; it never waits for what it handed out.

    A target that hangs fills its lane, and no other: plans still expire while it does.
    """

    def __init__(self, threads: int) -> None:
        sizes = {Lane.ROWS: ROW_THREADS, Lane.COMMITS: threads, Lane.READS: threads}
        sizes |= {
            Lane.HOOKS: threads,
            Lane.NOTICES: threads,
            Lane.TELLS: 1,
            Lane.SEALS: 1,
            Lane.COUNTS: 1,
            Lane.CHECKS: 1,
        }
        self._pools = {
            lane: ThreadPoolExecutor(size, thread_name_prefix=f"sweep-{lane}")
            for lane, size in sizes.items()
        }
        self._busy: set[tuple[str, Any]] = set()
        self._lock = threading.Lock()
        self._next_round = 0.0
        self._pulse = Pulse(SWEEPER)

    def look(self) -> None:
        """Find what is due and start what is not under way already."""
        try:
            work = due_work()
            self._pulse.beat_if_due()
        except AWAY as fault:
            log.warning("sweep.database_away", fault=type(fault).__name__)
            return
        finally:
            close_old_connections()
        if time.monotonic() >= self._next_round:
            self._next_round = time.monotonic() + ROUND_SECONDS
            work += EVERY_SECOND
        for each in work:
            if self._take(each):
                self._pools[each.lane].submit(self._do, each)

    def finish(self, *, drop_waiting: bool = True) -> None:
        """Let what is under way come to its end; what has not begun stays due."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=drop_waiting)
        for pool in self._pools.values():
            pool.shutdown(wait=True)

    def _take(self, work: Work) -> bool:
        with self._lock:
            if work.key in self._busy:
                return False
            self._busy.add(work.key)
            return True

    def _do(self, work: Work) -> None:
        """One row's failure never keeps the others waiting."""
        try:
            work()
        except Exception:
            log.exception("sweep.failed", work=work.key[0], pk=str(work.pk))
        finally:
            close_old_connections()
            with self._lock:
                self._busy.discard(work.key)

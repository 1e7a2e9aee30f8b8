"""`manage.py sweep`: does what time makes due, every second, with or without Redis (Q-2)."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog
from django.core.management.base import BaseCommand, CommandParser
from django.db import InterfaceError, OperationalError, close_old_connections

from plans.sweeper import Work, due_work

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    help = "Expire, commit, verify, re-plan and resolve whatever is due; runs until stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--period", type=float, default=1.0, help="seconds between looks")
        parser.add_argument("--once", action="store_true", help="one look, then exit")
        parser.add_argument("--threads", type=int, default=8)

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        if not options["once"]:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: stop.set())
        with ThreadPoolExecutor(options["threads"], thread_name_prefix="sweep") as pool:
            while True:
                began = time.monotonic()
                look(pool)
                if options["once"] or stop.wait(
                    max(0, began + options["period"] - time.monotonic())
                ):
                    return


def look(pool: ThreadPoolExecutor) -> None:
    """Find what is due and do it; one row's failure never keeps the others waiting."""
    try:
        work = due_work()
    except (OperationalError, InterfaceError) as fault:
        log.warning("sweep.database_away", fault=type(fault).__name__)
        return
    finally:
        close_old_connections()
    list(pool.map(_guarded, work))


def _guarded(act: Work) -> None:
    try:
        act()
    except Exception:
        log.exception("sweep.failed")
    finally:
        close_old_connections()

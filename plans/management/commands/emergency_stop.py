"""`manage.py emergency_stop REASON`: hold every send. Alone, it says what is the case."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit import actors, eras
from plans import emergency
from plans.errors import Problem


class Command(BaseCommand):
    help = "Hold every commit, resends too. People release it on /settings/, two of them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("reason", nargs="?", metavar="REASON")
        parser.add_argument("--release", action="store_true", help="needs --break-glass")
        parser.add_argument(
            "--break-glass",
            metavar="REASON",
            help="release without the second person; it is recorded as an alarm",
        )

    def handle(
        self,
        *args: Any,
        reason: str | None = None,
        release: bool = False,
        break_glass: str | None = None,
        **options: Any,
    ) -> None:
        if release != (break_glass is not None) or (release and reason is not None):
            raise CommandError(
                "A release needs two people, on /settings/. Where that cannot wait: "
                "emergency_stop --release --break-glass REASON"
            )
        # It may be the first that is written after a restore (L-2).
        eras.check()
        try:
            if break_glass is not None:
                self._release(break_glass)
            elif reason is not None:
                self._stop(reason)
            else:
                self._tell()
        except Problem as problem:
            raise CommandError(problem.detail) from None

    def _stop(self, reason: str) -> None:
        under_way = emergency.stop(reason, actor=actors.OPERATOR)
        self.stdout.write(f"Stopped: nothing more is sent. On their way already: {under_way}.")

    def _release(self, reason: str) -> None:
        released = emergency.break_glass(reason, actor=actors.OPERATOR)
        self.stdout.write("Sending again." if released else "Nothing was stopped.")

    def _tell(self) -> None:
        stop = emergency.current()
        if stop is None:
            self.stdout.write("Sending.")
        else:
            when = f"{stop.stopped_at:%Y-%m-%d %H:%M:%S} UTC"
            self.stdout.write(f"Stopped since {when} by {stop.stopped_by}: {stop.reason}")

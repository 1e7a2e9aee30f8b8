"""`manage.py apply_config FILE.toml [--check]` (7-interfaces)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit import actors
from plans.configuration.applying import apply
from plans.configuration.documents import Document
from plans.configuration.faults import ConfigurationError

WOULD_CHANGE = 2


class Command(BaseCommand):
    help = "Make people, targets, operations, agents and policies what a TOML file says."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.toml")
        parser.add_argument(
            "--check",
            action="store_true",
            help=f"print what would change, store nothing, exit {WOULD_CHANGE} if anything would",
        )

    def handle(self, *args: Any, file: Path, check: bool, **options: Any) -> None:
        try:
            changes = apply(Document(file), actors.OPERATOR, check=check)
        except ConfigurationError as error:
            raise CommandError(str(error)) from None
        for change in changes:
            for line in change.lines():
                self.stdout.write(line)
        if not changes:
            self.stdout.write("Nothing to change.")
        elif check:
            raise SystemExit(WOULD_CHANGE)

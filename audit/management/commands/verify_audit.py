"""`manage.py verify_audit [--checkpoints FILE]`: exits 0, or 1 and names the first bad row."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import ProgrammingError
from psycopg.errors import UndefinedTable

from audit.verification import MAX_UNSEALED_SECONDS, checkpoints_file, verify

NO_TRAIL: Final = (
    "This database has no trail at all, not even its tables. Is DATABASE_URL the right one? A new"
    " installation gets them by `manage.py prepare`."
)


class Command(BaseCommand):
    help = (
        "Verify the audit trail: rows against seals, seals against each other and checkpoints."
        " With -v 2 it says what that proves."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--checkpoints",
            type=Path,
            metavar="FILE",
            help="checkpoints that were kept elsewhere; without it those of AUDIT_CHECKPOINTS_FILE",
        )
        parser.add_argument("--json", action="store_true", help="print the report as JSON")
        parser.add_argument(
            "--latest", type=int, metavar="N", help="only the seals of about N newest events"
        )
        parser.add_argument(
            "--max-unsealed-seconds",
            type=float,
            default=MAX_UNSEALED_SECONDS,
            metavar="S",
            help="older events without a seal are a finding (default: %(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        given = options["checkpoints"]
        try:
            report = verify(
                given or checkpoints_file(settings.AUDIT_CHECKPOINTS_FILE),
                required=given is not None,
                latest=options["latest"],
                max_unsealed_seconds=options["max_unsealed_seconds"],
            )
        except OSError as error:
            raise CommandError(f"{error.filename} cannot be read: {error.strerror}") from None
        except ProgrammingError as error:
            if not isinstance(error.__cause__, UndefinedTable):
                raise
            raise CommandError(NO_TRAIL) from None
        if options["json"]:
            self.stdout.write(json.dumps(report.as_json(), indent=2))
        else:
            self.stdout.write("\n".join(report.lines(limits=options["verbosity"] > 1)))
        if not report.holds:
            sys.exit(1)

"""`manage.py export_audit DIR`: the trail as a bundle that needs no server to be verified (L-3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.bundles import export


class Command(BaseCommand):
    help = "Write events, seals, checkpoints, public keys and the verifier into a new folder."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR")

    def handle(self, *args: Any, folder: Path, **options: Any) -> None:
        try:
            about = export(folder)
        except OSError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"{about['events']} events and {about['seals']} seals written to {folder}.\n"
            f"Keys: {', '.join(about['keys'])}. Verify: python {folder}/verifier {folder}"
        )

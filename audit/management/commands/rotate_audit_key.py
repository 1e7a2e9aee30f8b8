"""`manage.py rotate_audit_key`: a fresh signing key in front of the ones before (SEC-35)."""

from __future__ import annotations

import base64
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from audit.signing import public_keys, rotated


class Command(BaseCommand):
    help = "Print the next value of AUDIT_SIGNING_KEYS. Processes use it after their restart."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--show", action="store_true", help="only list the public keys that are trusted now"
        )

    def handle(self, *args: Any, show: bool, **options: Any) -> None:
        if show:
            for name, raw in public_keys().items():
                self.stdout.write(f"{name} {base64.b64encode(raw).decode()}")
            return
        # Only the value, so that a script can write it to the file of AUDIT_SIGNING_KEYS_FILE.
        self.stdout.write(",".join(rotated(settings.AUDIT_SIGNING_KEYS)))

"""`manage.py rotate_keys`: everything encrypted is encrypted anew by the newest key (SEC-35)."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from plans.rekeying import rekey_all


class Command(BaseCommand):
    help = "Encrypt with the first of COUNTERSIGN_KEYS what an older one has encrypted."

    def handle(self, *args: Any, **options: Any) -> None:
        rows = rekey_all()
        self.stdout.write(f"{rows} rows are encrypted by the newest key; older ones may go.")

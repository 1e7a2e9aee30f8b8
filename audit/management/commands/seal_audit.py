"""`manage.py seal_audit`: close what can be closed now; the sweeper does it every second."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from audit.seals import seal_all


class Command(BaseCommand):
    help = "Seal the events of all transactions that have ended."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stderr.write(f"{seal_all()} events sealed.")

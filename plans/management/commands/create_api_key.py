"""`manage.py create_api_key AGENT [--scope …] [--expires-days N]`: prints a key once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit import actors
from plans.configuration.api_keys import DEFAULT_SCOPES, create_api_key
from plans.models import Agent, ApiKey


class Command(BaseCommand):
    help = "Make an API key for an agent. It is printed once; only its hash is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent", metavar="AGENT")
        parser.add_argument(
            "--scope",
            action="extend",
            nargs="+",
            choices=ApiKey.SCOPES,
            help=f"repeatable; default: {' '.join(DEFAULT_SCOPES)}; audit:read opens nothing yet",
        )
        parser.add_argument("--expires-days", type=int, metavar="N")

    def handle(
        self,
        *args: Any,
        agent: str,
        scope: list[str] | None = None,
        expires_days: int | None = None,
        **options: Any,
    ) -> None:
        owner = Agent.objects.filter(name=agent).first()
        if owner is None:
            raise CommandError(f"There is no agent {agent!r}; apply_config makes agents.")
        if expires_days is not None and not 1 <= expires_days <= 3650:
            raise CommandError("--expires-days must be from 1 to 3650.")
        expires_in = None if expires_days is None else timedelta(days=expires_days)
        try:
            key = create_api_key(owner, actors.OPERATOR, scopes=scope or (), expires_in=expires_in)
        except ValueError as error:
            raise CommandError(str(error)) from None
        # Only the key, so that a script can take it as it is.
        self.stdout.write(key.reveal())

"""`manage.py prepare [--config FILE]`: everything that stands between a new release and serving."""

from pathlib import Path
from typing import Any

from django.core.checks import Tags
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from audit import eras


class Command(BaseCommand):
    help = "Check the installation, migrate the database and make the cache table."
    # They run below, with the database among them.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--config", type=Path, help="A TOML file for apply_config.")

    def handle(self, *args: Any, **options: Any) -> None:
        # Only what depends on where it runs: the others load every page, and tests run them.
        self.check(tags=[Tags.security, Tags.database], databases=["default"])
        call_command("migrate", interactive=False, skip_checks=True, verbosity=0)
        call_command("createcachetable", verbosity=0)
        # Before anything is written: a restored trail goes on in a new era (L-2).
        eras.check()
        if options["config"]:
            call_command("apply_config", str(options["config"]))

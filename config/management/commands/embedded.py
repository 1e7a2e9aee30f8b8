"""`manage.py embedded status|start|stop|restart [postgres|valkey] [--immediate]`."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.embedded import NAMES, Cluster
from config.servers import EmbeddedError


class Command(BaseCommand):
    help = "Look after the PostgreSQL and Valkey that come with Countersign."
    # They may be down, which is the reason for this command.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["status", "start", "stop", "restart", "wipe"])
        parser.add_argument("server", nargs="?", choices=NAMES, help="Both when left out.")
        parser.add_argument("--immediate", action="store_true", help="Stop as a crash would.")
        parser.add_argument("--json", action="store_true", help="Status as one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = Cluster()
        names = (options["server"],) if options["server"] else NAMES
        try:
            match options["action"]:
                case "start":
                    cluster.start(names)
                case "stop":
                    cluster.stop(names, options["immediate"])
                case "restart":
                    cluster.restart(names, options["immediate"])
                case "wipe":
                    cluster.wipe()
                    return
        except EmbeddedError as error:
            raise CommandError(str(error)) from None
        self._report(cluster.status(), options["json"])

    def _report(self, status: dict[str, dict[str, Any]], as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(status))
            return
        for name, server in status.items():
            state = f"running (process {server['pid']})" if server["pid"] else "stopped"
            self.stdout.write(f"{name:8} {state}  {server['url']}")

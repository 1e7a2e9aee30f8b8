"""Pages of the documentation that are written from the code, so that they cannot lie."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

DOCS = Path(__file__).resolve().parent.parent / "docs"


class GeneratedPage(BaseCommand):
    """Writes `docs/<name>.md`, or with --check only says whether it is current."""

    name: str

    def render(self) -> str:
        """The whole page."""
        raise AssertionError("a page knows its text")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="change nothing; fail if stale")

    def handle(self, *args: Any, **options: Any) -> None:
        path, page = DOCS / f"{self.name}.md", self.render()
        if not options["check"]:
            path.write_text(page, "utf-8")
            self.stdout.write(f"docs/{path.name} written")
        elif not path.exists() or path.read_text("utf-8") != page:
            raise CommandError(f"docs/{path.name} is stale: run manage.py document_{self.name}")

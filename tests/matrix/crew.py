"""The product's processes on the test's own servers: what dies is started again at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import httpx
from django.conf import settings
from django.db import connection

from config.servers import free_port
from demo.processes import die_with_parent
from tests.matrix.arming import FOLDER

ROOT: Final = Path(__file__).resolve().parents[2]
LOOK_EVERY: Final = 0.05
QUIET: Final = ("--without-gossip", "--without-mingle", "--without-heartbeat")


@dataclass
class Member:
    """One process of the product."""

    name: str
    command: list[str]
    pool: int
    process: subprocess.Popen[bytes] | None = None


@dataclass
class Crew:
    """Web server, Celery worker and sweeper, with failpoints; `deaths` counts those by name."""

    folder: Path
    # One of tests/chaos/mutants.py: the product with a bug, which the matrix must find.
    mutant: str = ""
    web_port: int = field(default_factory=free_port)
    deaths: Counter[str] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        celery = ("-m", "celery", "-A", "config.celery", "worker", "-P", "threads", "-c", "24")
        uvicorn = ("-m", "uvicorn", "config.asgi:application", "--port", str(self.web_port))
        sweep = ("manage.py", "sweep", "--period", "0.3", "--threads", "12")
        self.members = [
            Member("web", [*uvicorn, "--no-access-log"], 24),
            Member("worker", [*celery, "-Q", "commit,default", *QUIET], 32),
            Member("sweeper", [*sweep], 34),
        ]
        # The kernel ends the children of a thread that ends: this one outlives them all.
        self.watch = threading.Thread(target=self._watch)
        database = connection.settings_dict
        self.environment = (
            os.environ
            | {
                "DJANGO_SETTINGS_MODULE": "tests.matrix.settings",
                "DATABASE_URL": "postgresql://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(
                    **database
                ),
                "SECRET_KEY": settings.SECRET_KEY,
                "COUNTERSIGN_KEYS": ",".join(settings.ENCRYPTION_KEYS),
                "AUDIT_CHECKPOINTS_FILE": str(settings.AUDIT_CHECKPOINTS_FILE),
                "LOG_LEVEL": "WARNING",
                "BASE_URL": self.url,
                "PYTHONPATH": str(ROOT),
                FOLDER: str(self.folder),
            }
            | ({"CHAOS_MUTANT": self.mutant} if self.mutant else {})
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.web_port}"

    def said(self) -> str:
        """The last lines of every log, for a run that came to no end."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text()[-2000:]}" for log in logs)

    def web_is_up(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health/live", timeout=2, trust_env=False).is_success
        except httpx.HTTPError:
            return False

    def _start(self, member: Member) -> None:
        role = member.name
        environment = {"COUNTERSIGN_ROLE": role, "DATABASE_POOL_MAX": str(member.pool)}
        with (self.folder / f"{member.name}.log").open("ab") as log:
            member.process = subprocess.Popen(
                [sys.executable, *member.command],
                cwd=ROOT,
                env=self.environment | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def _watch(self) -> None:
        for member in self.members:
            self._start(member)
        while not self.over.wait(LOOK_EVERY):
            for member in self.members:
                assert member.process is not None
                if member.process.poll() is not None:
                    self.deaths[member.name] += 1
                    self._start(member)
        for member in self.members:
            if member.process is not None:
                member.process.terminate()
        for member in self.members:
            if member.process is not None:
                member.process.wait(30)

    def __enter__(self) -> Self:
        self.watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over.set()
        self.watch.join(60)

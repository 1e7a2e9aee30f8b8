"""uvicorn in a process of its own, on the database of the tests: with its threads counted."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest
from django.conf import settings
from django.db import connection
from pytest_django import DjangoDbBlocker

from config.servers import free_port

ROOT: Final = Path(__file__).resolve().parents[2]


class Server:
    """uvicorn in a process of its own, on the database of this test."""

    def __init__(self, log: Path, application: str = "config.asgi:application") -> None:
        port = self.port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        database = connection.settings_dict
        address = "postgresql://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**database)
        environment = os.environ | {
            "DATABASE_URL": address,
            "SECRET_KEY": settings.SECRET_KEY,
            "COUNTERSIGN_KEYS": ",".join(settings.ENCRYPTION_KEYS),
            "COUNTERSIGN_ROLE": "web-under-test",
            "BASE_URL": self.url,
        }
        self.command = [sys.executable, "-m", "uvicorn", application, "--port", str(port)]
        self.environment, self.log = environment, log
        self.start()

    def start(self) -> None:
        """Also after `stop`, at the same address."""
        with self.log.open("a") as file:
            self.process = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=self.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self.wait_until_up()

    def wait_until_up(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                httpx.get(f"{self.url}/health/live", timeout=20)
            except httpx.HTTPError:
                assert self.process.poll() is None, self.log.read_text()
                time.sleep(0.1)
            else:
                return
        raise AssertionError(self.log.read_text())

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(15)

    @property
    def threads(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("Threads:"))
        return int(line.split()[1])

    def come_to_rest(self, clients: int, threads: int) -> None:
        """Return when so many clients are there and the threads that served them are gone."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if self.clients >= clients and self.threads <= threads:
                return
            time.sleep(0.1)

    @property
    def clients(self) -> int:
        """Established connections to the server's port."""
        end, established = f":{self.port:04X}", "01"
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        return sum(line[1].endswith(end) and line[3] == established for line in lines)

    @property
    def connections(self) -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s",
                ["countersign-web-under-test"],
            )
            return int(cursor.fetchone()[0])

    @property
    def is_at_rest(self) -> bool:
        """Whether none of its connections has anything to do."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE application_name = %s AND state <> 'idle'",
                ["countersign-web-under-test"],
            )
            return int(cursor.fetchone()[0]) == 0


@contextmanager
def hasty(folders: pytest.TempPathFactory, database: DjangoDbBlocker) -> Iterator[Server]:
    """A server whose streams look at sessions often, for a module of tests."""
    log = folders.mktemp("web") / "server.log"
    with database.unblock():
        server = Server(log, "tests.config.hasty_asgi:application")
    try:
        yield server
    finally:
        server.stop()

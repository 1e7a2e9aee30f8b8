"""The product as it runs: web, commit worker, default worker, sweeper, each its own process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from demo.processes import Child, Family

ROOT: Final = Path(__file__).resolve().parent.parent
AGENTS: Final = 8
PASSWORD: Final = "correct horse battery staple"
CONFIG: Final = """
[[people]]
username = "ada"
groups = ["reviewers"]
password = "env:BENCH_PASSWORD"

[[people]]
username = "dana"
groups = []

[[targets]]
name = "sink"
base_url = "http://127.0.0.1:{port}"
internal = true
credential = "env:BENCH_CREDENTIAL"
plan_path = "/plans/{{plan_id}}"
idempotency = true
key_retention_seconds = 86400
enforces_expiry = true
consumed_plans_readable = true
reviewers = ["reviewers"]

[[targets.operations]]
name = "refund"
title = "Refund {{delta.refunded_cents:money:USD}} on {{object}}"
dry_run_path = "/dry_run"
commit_path = "/commit"
"""
AGENT: Final = """
[[agents]]
name = "bench-{number}"
owner = "dana"
pending_cap = 1000000
rate_limit_per_minute = 100000000
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where everything listens, and who may call it."""

    web_port: int
    sink_port: int
    database_url: str
    redis_url: str
    keys: tuple[str, ...]
    home: Path
    environment: dict[str, str] = field(repr=False)

    @property
    def web_pid(self) -> int:
        """The one web process."""
        return int((self.home / "pids" / "web.pid").read_text())

    def manage(self, *arguments: str) -> str:
        """Run `manage.py` here; what it printed."""
        return _python(self.environment, "manage.py", *arguments)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running() -> Iterator[Stage]:
    """Everything started on servers of its own, and stopped without a trace."""
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as folder:
        home = Path(folder)
        home.chmod(0o755)
        for name in ("pids", "logs"):
            (home / name).mkdir()
        environment = {
            **os.environ,
            "COUNTERSIGN_HOME": folder,
            "BENCH_PASSWORD": PASSWORD,
            "BENCH_CREDENTIAL": "credential-of-the-bench",
        }
        family = Family()
        servers = json.loads(_python(environment, "-m", "config.embedded", "start"))
        try:
            yield _start(family, environment, home, servers)
        finally:
            family.stop()
            _python(environment, "-m", "config.embedded", "stop")


def _start(
    family: Family, environment: dict[str, str], home: Path, servers: dict[str, str]
) -> Stage:
    web, sink = free_port(), free_port()
    environment |= {"PORT": str(web), "BASE_URL": f"http://127.0.0.1:{web}"}
    config = home / "config.toml"
    agents = "".join(AGENT.format(number=number) for number in range(AGENTS))
    config.write_text(CONFIG.format(port=sink) + agents)
    _python(environment, "manage.py", "prepare", "--config", str(config))
    keys = tuple(
        _python(environment, "manage.py", "create_api_key", f"bench-{number}").strip()
        for number in range(AGENTS)
    )

    def child(name: str, role: str, *arguments: str) -> Child:
        own = environment | {"COUNTERSIGN_ROLE": role, "DATABASE_POOL_MAX": "16"}
        return Child(name, [sys.executable, *arguments], own, home, ROOT)

    def worker(queue: str) -> Child:
        quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
        pool = ("-P", "threads", "-c", "8", "-Q", queue, "-n", f"{queue}@bench", *quiet)
        return child(
            f"worker-{queue}", "worker", "-m", "celery", "-A", "config.celery", "worker", *pool
        )

    listen = ("--host", "127.0.0.1", "--port", str(web), "--no-access-log")
    family.add(
        child("sink", "", "-m", "bench.target", str(sink)),
        child("web", "web", "-m", "uvicorn", "config.asgi:application", *listen),
        worker("commit"),
        worker("default"),
        child("sweeper", "sweeper", "manage.py", "sweep"),
    )
    _wait_for(f"http://127.0.0.1:{web}/health/live")
    database, redis = servers["database_url"], servers["redis_url"]
    return Stage(web, sink, database, redis, keys, home, environment)


def _python(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{arguments} failed: {done.stderr.strip()}")
    return done.stdout


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)

"""Our own processes before a scripted target: each is started, killed, frozen and drained by name.

Unlike `make demo`, nobody starts again what dies: a test sees what the others do about it. The
target lives in the test's own process, so its ledger survives whatever is broken here.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import httpx

from config.embedded import Cluster
from config.servers import free_port
from demo.credentials import Credentials
from tests.faults.scripted_target import ScriptedTarget
from tests.journeys.product import KEPT, PATIENCE, ROOT, eventually
from tests.outages.stored import Stored

# Deaths in the family: the process ends with whoever runs the tests, even by SIGKILL.
LEASHED: Final = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); os.execv(sys.argv[1], sys.argv[1:])"
)
THREADS: Final = 4
CONFIG: Final = """
[[people]]
username = "ada"
groups = ["reviewers"]
password = "env:ADA_PASSWORD"

[[people]]
username = "dana"
groups = ["reviewers"]
password = "env:ADA_PASSWORD"

[[targets]]
name = "billing"
base_url = "{url}"
internal = true
credential = "env:BILLING_TOKEN"
plan_path = "/plans/{{plan_id}}"
key_retention_seconds = 86400
enforces_expiry = true
consumed_plans_readable = true
connect_timeout_seconds = 3
read_timeout_seconds = 3
total_timeout_seconds = 3
retry_delays_seconds = [0.3, 0.6, 1, 2]
min_window_seconds = 2
reviewers = ["reviewers"]

[[targets.operations]]
name = "refund"
title = "Refund {{delta.refunded_cents:money:USD}} on {{object}}"
formats = {{ refunded_cents = "money:USD" }}
dry_run_path = "/refund/dry_run"
commit_path = "/refund/commit"
replan = "agent"
risk = "high"
inputs_schema = "{root}/demo/refund.inputs.json"
ops = ["update"]
fields = ["refunded_cents", "status"]

[[agents]]
name = "support-agent"
owner = "dana"
pending_cap = 500
rate_limit_per_minute = 60000
"""


class Stage(Stored):
    """Servers of its own, one web process, one worker for both queues, one sweeper."""

    def __init__(self, target: ScriptedTarget) -> None:
        self.target = target
        self.home = Path(tempfile.mkdtemp(prefix="countersign-outages-"))
        # Root runs PostgreSQL as another account, which must reach its data below this folder.
        self.home.chmod(0o755)
        self.cluster = Cluster(self.home)
        self.port, self.spare_port = free_port(), free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.secrets = {"ADA_PASSWORD": "ada-of-the-outages", "BILLING_TOKEN": "billing-token-1"}
        self.environment = {name: os.environ[name] for name in KEPT if name in os.environ} | {
            "COUNTERSIGN_HOME": str(self.home),
            "PORT": str(self.port),
            "PYTHONUNBUFFERED": "1",
            "DATABASE_POOL_MAX": "12",
            **self.secrets,
        }
        self.commands: dict[str, list[str]] = {
            "web": self.web(self.port),
            "worker": self.worker("config.celery", "worker"),
            "sweeper": ["manage.py", "sweep"],
        }
        self.credentials = Credentials(f"http://127.0.0.1:{self.port}", target.base_url, {})

    def web(self, port: int) -> list[str]:
        listen = ("--host", "127.0.0.1", "--port", str(port), "--no-proxy-headers")
        quiet = ("--no-access-log", "--timeout-graceful-shutdown", "3")
        return ["-m", "uvicorn", "config.asgi:application", *listen, *quiet]

    def worker(self, app: str, name: str) -> list[str]:
        quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
        pool = ("-P", "threads", "-c", str(THREADS), "-Q", "commit,default", "-n", f"{name}@%h")
        return ["-m", "celery", "-A", app, "worker", *pool, *quiet]

    def open(self) -> None:
        """The database is prepared, the agent has its key, and everything runs."""
        self.cluster.start()
        config = self.home / "stage.toml"
        config.write_text(CONFIG.format(url=self.target.base_url, root=ROOT))
        self.manage("prepare", "--config", str(config))
        key = re.search(r"cs_\S+", self.manage("create_api_key", "support-agent"))
        assert key is not None
        people = {name: {"password": self.secrets["ADA_PASSWORD"]} for name in ("ada", "dana")}
        token = {"token": "none", "agent_token": "none"}
        self.credentials.raw.update(
            people=people, agents={"support-agent": {"api_key": key[0]}}, targets={"billing": token}
        )
        self.start(*self.commands)

    # ── Processes ────────────────────────────────────────────────────────────────────────────

    def start(self, *names: str, **environment: str) -> None:
        """Start these, at once, and come back when each one works."""
        for name in names:
            self.processes[name] = self.popen(name, self.commands[name], **environment)
        for name in names:
            assert eventually(partial(self.works, name), 60), self.said(name)

    def popen(self, name: str, command: list[str], **environment: str) -> subprocess.Popen[bytes]:
        role = {"COUNTERSIGN_ROLE": name.partition("-")[0]}
        with self.log(name).open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-S", "-c", LEASHED, sys.executable, *command],
                cwd=ROOT,
                env=self.environment | role | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def log(self, name: str) -> Path:
        return self.home / f"{name}.log"

    def said(self, name: str) -> str:
        return self.log(name).read_text()

    def works(self, name: str) -> bool:
        """The web process answers; the others have written their heartbeat."""
        process = self.processes[name]
        assert process.poll() is None, self.said(name)
        if name == "web":
            try:
                address = f"http://127.0.0.1:{self.port}/health/live"
                return httpx.get(address, trust_env=False, timeout=5).is_success
            except httpx.TransportError:
                return False
        beat = "SELECT 1 FROM plans_heartbeat WHERE process LIKE %s"
        return bool(self.sql(beat, f"%:{process.pid}"))

    def end(self, name: str, number: int = signal.SIGTERM, seconds: float = 30) -> int:
        """Signal one and wait for its end; the exit code, negative for a signal."""
        process = self.processes.pop(name)
        process.send_signal(number)
        return process.wait(seconds)

    def restart(self, seconds_off: Mapping[str, int], **environment: str) -> None:
        """Each of these again, with its own clock so many seconds off."""
        for name in seconds_off:
            self.end(name)
        for name, seconds in seconds_off.items():
            off = {"SECONDS_OFF": str(seconds)} | environment
            self.processes[name] = self.popen(name, self.commands[name], **off)
        for name in seconds_off:
            assert eventually(partial(self.works, name), 60), self.said(name)

    def drain(self) -> dict[str, int]:
        """SIGTERM to everything at once; the exit codes."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        codes = {name: process.wait(30) for name, process in self.processes.items()}
        self.processes.clear()
        return codes

    @contextmanager
    def frozen(self, *names: str) -> Iterator[None]:
        """These stand still until the block ends."""
        held = [self.processes[name] for name in names]
        for process in held:
            process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in held:
                process.send_signal(signal.SIGCONT)

    @contextmanager
    def supervised(self, name: str) -> Iterator[None]:
        """Until the block ends it is started again whenever it has ended by itself."""
        over = threading.Event()

        def supervise() -> None:
            while not over.wait(0.2):
                process = self.processes.get(name)
                if process is not None and process.poll() is not None:
                    self.processes[name] = self.popen(name, self.commands[name])

        supervisor = threading.Thread(target=supervise, daemon=True)
        supervisor.start()
        try:
            yield
        finally:
            over.set()
            supervisor.join()

    def children(self, name: str) -> list[int]:
        """The processes that this one has started."""
        path = Path(f"/proc/{self.processes[name].pid}/task")
        lists = (each.read_text() for each in path.glob("*/children"))
        return [int(pid) for text in lists for pid in text.split()]

    def ring(self, pk: int, times: int) -> None:
        """The doorbell of one plan's commit, so many times."""
        program = f"[commit_plan.delay({pk}) for _ in range({times})]"
        load = "import config.celery, django; django.setup(); from plans.tasks import commit_plan"
        self.python("-c", f"{load}; {program}")

    def manage(self, *arguments: str, **environment: str) -> str:
        """Run `manage.py` here; what it printed. It must succeed."""
        return self.python("manage.py", *arguments, **environment)

    def python(self, *arguments: str, **environment: str) -> str:
        done = self._run(*arguments, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def trail_verifies(self) -> bool:
        """Whether everything is sealed, and every seal holds."""
        return self._run("manage.py", "verify_audit").returncode == 0

    def _run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def settled(self) -> None:
        """Until pages find the database again: a pool meets its dead connections one by one."""
        assert eventually(lambda: all(self.health("postgres")[1] for _ in range(3)), 60)

    def health(self, part: str) -> tuple[str, bool]:
        """What `/health/ready` says of the whole, and of one part."""
        address = f"http://127.0.0.1:{self.port}/health/ready"
        told = httpx.get(address, trust_env=False, timeout=10).json()
        return told["status"], told[part]["ok"]

    def close(self) -> None:
        """Leave nothing, whatever state it is in."""
        for process in self.processes.values():
            process.kill()
            process.wait(PATIENCE)
        self.cluster.wipe()
        shutil.rmtree(self.home, ignore_errors=True)


_numbers = itertools.count(1)
_lock = threading.Lock()


def new_invoice() -> str:
    """An invoice that no other plan of this process touches."""
    with _lock:
        return str(next(_numbers))

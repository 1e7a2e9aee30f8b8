"""The whole product as `make demo` starts it: seven processes, a home and ports of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from config.servers import free_port
from demo.credentials import Credentials

ROOT: Final = Path(__file__).resolve().parents[2]
# A machine that others use as well may be slow; what is claimed never depends on these.
PATIENCE: Final = 240.0
CHILDREN: Final = ("web", "worker-commit", "worker-default", "sweeper", "billing")
# Nothing of the test run's own servers and settings reaches the product.
KEPT: Final = ("PATH", "HOME", "USER", "LANG", "TMPDIR", "LD_LIBRARY_PATH")
# The demo's target with less patience, and reached through the wire that the tests listen on.
CONFIG: Final = """
[[targets]]
name = "billing"
base_url = "{url}"
credential = "env:BILLING_TOKEN"
read_timeout_seconds = 4
total_timeout_seconds = 6
retry_delays_seconds = [0.5, 1, 2, 4]
min_window_seconds = 3
"""
# The shortest plans here live this long: three quarters of it are for the reviewer.
SHORT: Final = 9


def eventually(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Whether it comes true in time; looks ten times a second."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


class Product:
    """One home, started and stopped as an operator does it."""

    def __init__(self, **environment: str) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="countersign-journeys-"))
        # Root runs PostgreSQL as another account, which must reach its data below this folder.
        self.home.chmod(0o755)
        self.port, self.billing_port = free_port(), free_port()
        while self.billing_port == self.port:
            self.billing_port = free_port()
        self.supervisor: subprocess.Popen[bytes] | None = None
        self.environment = {name: os.environ[name] for name in KEPT if name in os.environ} | {
            "COUNTERSIGN_HOME": str(self.home),
            "PORT": str(self.port),
            "BILLING_PORT": str(self.billing_port),
            "DEMO_AGENT": "0",
            # As below make: the supervisor ends with whoever started it, even by SIGKILL.
            "MAKELEVEL": "1",
            **environment,
        }

    @property
    def running(self) -> bool:
        return self.supervisor is not None and self.supervisor.poll() is None

    @property
    def said(self) -> str:
        """What the supervisor has printed since its last start."""
        return (self.home / "said").read_text()

    @property
    def greeted(self) -> bool:
        """Whether it has told its addresses: the web server answers by then."""
        return "Ctrl-C stops everything" in self.said

    @property
    def credentials(self) -> Credentials:
        raw = json.loads((self.home / "credentials.json").read_text())
        return Credentials(raw["base_url"], raw["billing_url"], raw)

    def start(self) -> None:
        """Start everything and come back when it is there."""
        with (self.home / "said").open("wb") as said:
            self.supervisor = subprocess.Popen(
                [sys.executable, "-m", "demo.run"],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        assert eventually(lambda: self.greeted or not self.running), self.said
        assert self.running, f"it ended with {self.supervisor.poll()}: {self.said}"

    def configure(self, billing_url: str) -> None:
        """What an operator does with a TOML file of their own, while everything runs."""
        file = self.home / "patience.toml"
        file.write_text(CONFIG.format(url=billing_url))
        token = self.credentials.raw["targets"]["billing"]["token"]
        self.manage("apply_config", str(file), BILLING_TOKEN=token)

    def manage(self, *arguments: str, **environment: str) -> str:
        """Run `manage.py` in this home and return what it printed."""
        return self._python("manage.py", *arguments, **environment)

    def story(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`python -m demo.story` against what runs here, to its end."""
        return self._run("-m", "demo.story", *arguments)

    def stop(self) -> int:
        """Press Ctrl-C; the exit code."""
        assert self.supervisor is not None
        self.supervisor.send_signal(signal.SIGINT)
        return self.supervisor.wait(PATIENCE)

    def crash(self) -> None:
        """The supervisor is gone from one moment to the next."""
        assert self.supervisor is not None
        self.supervisor.kill()
        self.supervisor.wait(PATIENCE)

    def pid(self, name: str) -> int:
        """The process that has this part now; 0: none, it is being started again."""
        try:
            return int((self.home / "pids" / f"{name}.pid").read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def processes(self) -> dict[int, str]:
        """Every process of this home, whoever started it: process id and command."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                about = command.encode() + (folder / "environ").read_bytes()
            except (OSError, UnicodeDecodeError):
                continue
            if str(self.home).encode() in about:
                found[int(folder.name)] = command
        return found

    def wipe(self) -> None:
        """Leave nothing, whatever state it is in."""
        if self.running:
            self.stop()
        self._run("-m", "config.embedded", "wipe")
        shutil.rmtree(self.home, ignore_errors=True)

    def _python(self, *arguments: str, **environment: str) -> str:
        done = self._run(*arguments, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

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

"""Keeping the demo's processes alive, and leaving none behind."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

STOP_SECONDS = 10.0
LARGEST_LOG = 5_000_000
PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel for SIGTERM when the parent dies, even by SIGKILL. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass
class Child:
    """One process: started, watched, started again, stopped."""

    name: str
    command: list[str]
    environment: Mapping[str, str]
    home: Path
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    next_start_at: float = 0.0
    failures: int = 0

    @property
    def pid_file(self) -> Path:
        return self.home / "pids" / f"{self.name}.pid"

    @property
    def log_file(self) -> Path:
        return self.home / "logs" / f"{self.name}.log"

    def start(self) -> None:
        """Start it in a session of its own: Ctrl-C reaches the supervisor alone."""
        if self.log_file.exists() and self.log_file.stat().st_size > LARGEST_LOG:
            self.log_file.replace(self.log_file.with_suffix(".log.1"))
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                env=dict(self.environment),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        self.started_at = time.monotonic()
        self.pid_file.write_text(f"{self.process.pid}\n")

    def bury(self) -> None:
        """End what a killed supervisor left behind, if its pid file still names that process."""
        try:
            pid = int(self.pid_file.read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
        except (OSError, ValueError):
            return
        if command == [part.encode() for part in self.command]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def plan_restart(self) -> float:
        """Seconds to wait: at once after a long life, longer each time after a short one."""
        assert self.process is not None
        short = time.monotonic() - self.started_at < 10
        self.failures = self.failures + 1 if short else 0
        delay = min(0.5 * 2**self.failures, 30) if short else 0.0
        self.next_start_at = time.monotonic() + delay
        self.process = None
        self.pid_file.unlink(missing_ok=True)
        return delay

    def signal_group(self, number: int) -> None:
        """The group, because workers may have children of their own."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


@dataclass
class Family:
    """All children of one supervisor."""

    children: list[Child] = field(default_factory=list)

    def add(self, *children: Child) -> None:
        """Start them and look after them from now on."""
        for child in children:
            child.bury()
            self.children.append(child)
            child.start()

    def revive(self) -> None:
        """Start again whatever ended, and say so."""
        for child in self.children:
            if child.has_ended():
                code = child.process.returncode if child.process else None
                delay = child.plan_restart()
                print(
                    f"{child.name} ended with {code}; it starts again in {delay:.0f} s. "
                    f"See {child.log_file}",
                    flush=True,
                )
            elif child.process is None and time.monotonic() >= child.next_start_at:
                child.start()

    def stop(self) -> None:
        """SIGTERM to all at once; SIGKILL to those that stay."""
        for child in self.children:
            child.signal_group(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for child in self.children:
            if child.process is not None:
                try:
                    child.process.wait(max(0.0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    print(f"{child.name} does not stop; it is killed.", flush=True)
            child.signal_group(signal.SIGKILL)
            if child.process is not None:
                child.process.wait()
            child.pid_file.unlink(missing_ok=True)

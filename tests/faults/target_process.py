"""The durable target as a test holds it: started, killed, started again, and told what to do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from demo.processes import die_with_parent

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 30.0


class TargetProcess:
    """`with TargetProcess(folder) as target:`; the folder outlives every kill."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        self.process: subprocess.Popen[bytes] | None = None
        alone = httpx.Limits(max_keepalive_connections=0)
        self.client = httpx.Client(trust_env=False, timeout=PATIENCE, limits=alone)

    def url(self, house: str = "plain") -> str:
        ports = json.loads((self.folder / "ports.json").read_text())
        return f"http://127.0.0.1:{ports[house]}"

    def start(self) -> None:
        """Come back when it answers."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.durable_target", str(self.folder)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.ledger()
            except (httpx.HTTPError, FileNotFoundError):
                assert time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """SIGKILL, whatever it is doing."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(PATIENCE)

    def register(self, plans: Iterable[dict[str, Any]]) -> None:
        self._order("_plans", list(plans))

    def play(self, *orders: tuple[str, str, str]) -> None:
        """`(subject, kind, mode)` each: what its next requests meet."""
        names = ("subject", "kind", "mode")
        self._order("_play", [dict(zip(names, order, strict=True)) for order in orders])

    def open_refusing(self) -> None:
        """The house that refused connections takes them from now on."""
        self._order("_open", {})

    def mark_of(self, plan_id: str) -> Path:
        """A file that is there once the plan has been applied."""
        return self.folder / "applied" / plan_id

    def ledger(self) -> list[dict[str, Any]]:
        """Every effect: plan_id, key, body_sha256, cents, at."""
        return self._told("_ledger")

    def arrivals(self) -> list[dict[str, Any]]:
        """Every commit that was read: plan_id, key, attempt, body_sha256, at."""
        return self._told("_arrivals")

    def _order(self, path: str, body: object) -> None:
        self.client.post(f"{self.url()}/{path}", json=body).raise_for_status()

    def _told(self, path: str) -> list[dict[str, Any]]:
        return list(self.client.get(f"{self.url()}/{path}").raise_for_status().json())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.close()
        self.kill()

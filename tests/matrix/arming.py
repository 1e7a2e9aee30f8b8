"""What happens at a failpoint: ordered by files, so that it reaches every process and no rollback.

An order is a file of `armed/`; the one passage that moves it into `met/` carries it out. What is
left in `armed/` at the end was never met.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from django.apps import AppConfig

FOLDER: Final = "FAILPOINTS_FOLDER"
# Seconds. All die together, since it is starting again that takes long: so long after the last
# arrival, which is more than an attempt takes. Commits that would begin meanwhile wait for it.
COME_ALONG: Final = 0.3
LAST_BREATH: Final = 1.4
LONGEST_BREATH: Final = 5.0
MOST_TURNS: Final = 3
LONGEST_STALL: Final = 20.0
# With the target's patience of one second: leases of two.
LEASE_SLACK: Final = timedelta(seconds=1)


class Injected(Exception):
    """Raised at a failpoint."""


class Orders:
    """The orders of one run, as the test gives them and as its processes take them."""

    def __init__(self, folder: Path) -> None:
        self.armed, self.met = folder / "armed", folder / "met"
        for each in (self.armed, self.met):
            each.mkdir(parents=True, exist_ok=True)

    def arm(self, step: str, key: object, act: str, *, turn: int = 0) -> None:
        """A passage of this step with this key (None: any) does `act`; one more for each `turn`.

        `raise`, `kill`, `stall SECONDS`, or `stall until PATH` exists, though not for ever.
        """
        part = self.armed.parent / "part"
        part.write_text(act)
        part.replace(self.armed / _name(step, key, turn))

    def take(self, step: str, key: object) -> str:
        """The order for this passage, which nobody else gets; empty: go on."""
        for turn in range(MOST_TURNS):
            for name in (_name(step, key, turn), _name(step, None, turn)):
                with contextlib.suppress(FileNotFoundError):
                    (self.armed / name).rename(self.met / name)
                    return (self.met / name).read_text()
        return ""

    def left(self) -> list[str]:
        """Orders that no passage has met yet."""
        return sorted(path.name for path in self.armed.iterdir())


def _name(step: str, key: object, turn: int) -> str:
    return f"{step}@{'' if key is None else key}.{turn}"


class Failpoints(AppConfig):
    name = "tests.matrix"
    label = "failpoints"

    def ready(self) -> None:
        """In the processes that have a folder; leases and back-offs become short in them."""
        from audit import failpoints
        from plans import replanning, sending

        sending.LEASE_SLACK = replanning.LEASE_SLACK = LEASE_SLACK  # type: ignore[misc]
        replanning.BACK_OFF = (0, 1, 1, 1)  # type: ignore[misc, assignment]
        orders = Orders(Path(os.environ[FOLDER]))
        failpoints.install(partial(pass_by, orders))


def pass_by(orders: Orders, step: str, key: object) -> None:
    """One passage, in the thread that makes it; who would begin beside the dying waits for them."""
    if step == "claim.before" and _death.is_near():
        threading.Event().wait()
    match orders.take(step, key).split(" ", 2):
        case ["raise"]:
            raise Injected
        case ["kill"]:
            _death.come()
        case ["stall", "until", path]:
            patience = time.monotonic() + LONGEST_STALL
            while not Path(path).exists() and time.monotonic() < patience:
                time.sleep(0.02)
        case ["stall", seconds]:
            time.sleep(float(seconds))


class Death:
    """The end of this process, which the first who is ordered to die brings about."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.begun = self.last = 0.0

    def is_near(self) -> bool:
        return bool(self.begun) and time.monotonic() > self.begun + COME_ALONG

    def come(self) -> None:
        """SIGKILL, to every thread that has come to such a place by then."""
        self.last = time.monotonic()
        if self.lock.acquire(blocking=False):
            self.begun = self.last
            while time.monotonic() < min(self.last + LAST_BREATH, self.begun + LONGEST_BREATH):
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()


_death = Death()

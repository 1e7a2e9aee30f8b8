"""Faults on order: how a commit goes wrong for the next callers."""

import threading
from dataclasses import dataclass
from typing import Any

from .problems import Problem, not_allowed
from .strict_json import parse_object, unknown_members

MAX_SECONDS = 600


@dataclass(frozen=True)
class Mode:
    """Is the commit carried out, and what does the caller get instead of its answer?

    `ending`: `silence` (the socket stays open without a word, then closes), `reset`, `slow`
    (the true answer, late), or an HTTP status.
    """

    applies: bool
    ending: str | int


MODES = {
    "apply_then_timeout": Mode(applies=True, ending="silence"),
    "timeout_before_apply": Mode(applies=False, ending="silence"),
    "apply_then_reset": Mode(applies=True, ending="reset"),
    "reset_before_apply": Mode(applies=False, ending="reset"),
    "apply_then_error_500": Mode(applies=True, ending=500),
    "error_500": Mode(applies=False, ending=500),
    "error_503": Mode(applies=False, ending=503),
    "error_429": Mode(applies=False, ending=429),
    "apply_slowly": Mode(applies=True, ending="slow"),
}


class NoAnswer(Exception):
    """The caller hears nothing for `seconds`; then the connection closes, or is `reset`."""

    def __init__(self, seconds: float, *, reset: bool = False) -> None:
        super().__init__()
        self.seconds = seconds
        self.reset = reset


@dataclass(frozen=True)
class Fault:
    """One armed fault: its mode and how long its silence or slowness lasts."""

    mode: Mode
    seconds: float

    def end(self) -> None:
        """Raise what the caller gets instead of the answer; nothing for a slow commit."""
        match self.mode.ending:
            case "silence":
                raise NoAnswer(self.seconds)
            case "reset":
                raise NoAnswer(0, reset=True)
            case 500:
                raise Problem(500, "injected-fault", "This failure was ordered.")
            case 429 | 503 as status:
                problem = Problem(status, "injected-fault", "This refusal was ordered.")
                raise problem.with_headers(Retry_After=str(max(1, round(self.seconds))))


class Faults:
    """What is armed now; in memory, so a restart is a clean slate."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fault: Fault | None = None
        self._left = 0

    def arm(self, raw: bytes) -> dict[str, Any]:
        """`{"commit": mode|"none", "times"?: 1, "seconds"?: 60}` for the next commits."""
        body = parse_object(raw)
        mode, times, seconds = body.get("commit"), body.get("times", 1), body.get("seconds", 60)
        found = unknown_members(body, "commit", "times", "seconds")
        if not isinstance(mode, str) or mode not in {*MODES, "none"}:
            found.append(("/commit", f"must be one of none, {', '.join(MODES)}"))
        if type(times) is not int or not 1 <= times <= 1_000_000:
            found.append(("/times", "must be a whole number from 1 to 1000000"))
        if type(seconds) not in (int, float) or not 0 <= seconds <= MAX_SECONDS:
            found.append(("/seconds", f"must be a number from 0 to {MAX_SECONDS}"))
        if found:
            raise not_allowed(*found)
        with self._lock:
            self._fault = Fault(MODES[mode], seconds) if mode in MODES else None
            self._left = times if self._fault else 0
            return {"commit": mode, "times": self._left, "seconds": seconds}

    def take(self) -> Fault | None:
        """The fault for one commit, if any is left."""
        with self._lock:
            if not self._left:
                return None
            self._left -= 1
            return self._fault

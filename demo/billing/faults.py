"""Faults on order: how a commit goes wrong for the next callers."""

import socket
import struct
import threading
from dataclasses import dataclass
from typing import Any

from countersign_target import Answer, Problem, Request, not_allowed
from countersign_target.serving import Handler
from countersign_target.strict_json import parse_object, unknown_members

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

    def end(self) -> Answer | None:
        """What the caller gets instead of the answer, or NoAnswer; None for a slow commit."""
        match self.mode.ending:
            case "silence":
                raise NoAnswer(self.seconds)
            case "reset":
                raise NoAnswer(0, reset=True)
            case int() as status:
                problem = Problem(status, "injected-fault", "This failure was ordered.")
                if status != 500:
                    problem.with_headers(Retry_After=str(max(1, round(self.seconds))))
                return Answer.refusing(problem, "billing")
        return None


class Faults:
    """What is armed now; in memory, so a restart is a clean slate."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._here = threading.local()
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

    def linger(self) -> None:
        """Called while a commit holds its locks: a slow one takes its time here."""
        self.stopping.wait(getattr(self._here, "seconds", 0))

    def slow_down(self, fault: Fault | None) -> None:
        """How long the commits of this thread linger from now on."""
        self._here.seconds = fault.seconds if fault and fault.mode.ending == "slow" else 0


class FaultyHandler(Handler):
    """Keeps silent, or resets the connection, where that was ordered."""

    def respond(self, request: Request) -> None:
        """Answer, unless NoAnswer is raised."""
        try:
            super().respond(request)
        except NoAnswer as silence:
            self.server.served.faults.stopping.wait(silence.seconds)  # type: ignore[attr-defined]
            if silence.reset:
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True

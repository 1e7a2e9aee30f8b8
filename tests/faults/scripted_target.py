"""A target whose next answers are scripted, with a ledger of what reached it and what it applied.

    with ScriptedTarget() as target:
        target.play(hang(applies=True), apply)

Steps are used up in order; after them it behaves as a good target does: it applies a plan once,
repeats the stored answer for the same key, and tells the truth about a plan's state.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

CHANGED = [{"path": "refunded_cents", "planned": 0, "current": 20000}]


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def key(self) -> str:
        return self.headers["Idempotency-Key"]


@dataclass(frozen=True)
class Reply:
    status: int
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def raw(self) -> bytes:
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        head = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        lines = [f"HTTP/1.1 {self.status} Scripted"]
        lines += [f"{name}: {value}" for name, value in {**head, **self.headers}.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


type Step = Callable[["ScriptedTarget", Received, str], Reply | bytes | None]
"""(target, request, plan ID) → what is sent back; None: the connection is closed without."""


def apply(target: ScriptedTarget, request: Received, plan_id: str) -> Reply:
    """What a good target does with a commit."""
    with target.lock:
        known = target.applied.get(plan_id)
        if known is not None and known.key != request.key:
            return Reply(409, {"code": "plan-consumed"})
        if known is not None:
            return Reply(200, known.body(plan_id), {"Idempotent-Replayed": "true"})
        target.applications.append(plan_id)
        target.applied[plan_id] = Applied(request.key)
        return Reply(200, target.applied[plan_id].body(plan_id))


def answer(status: int, body: object = None, *, applies: bool = False, **headers: str) -> Step:
    """One complete answer; `Retry_After=2` becomes the header Retry-After."""

    def step(target: ScriptedTarget, request: Received, plan_id: str) -> Reply:
        if applies:
            apply(target, request, plan_id)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Reply(status, {} if body is None else body, named)

    return step


def raw(data: bytes, *, applies: bool = False) -> Step:
    """Bytes as they are, then the connection is closed."""

    def step(target: ScriptedTarget, request: Received, plan_id: str) -> bytes:
        if applies:
            apply(target, request, plan_id)
        return data

    return step


def hang(*, applies: bool = False, until: threading.Event | None = None) -> Step:
    """Nothing comes back until the caller has given up; `until` ends it with the answer."""

    def step(target: ScriptedTarget, request: Received, plan_id: str) -> Reply | None:
        reply = apply(target, request, plan_id) if applies else None
        (until or target.closing).wait(18)
        return reply if until is not None else None

    return step


def drop(*, applies: bool = False) -> Step:
    """Read everything, perhaps apply it, and hang up."""

    def step(target: ScriptedTarget, request: Received, plan_id: str) -> None:
        if applies:
            apply(target, request, plan_id)

    return step


def drip(*, applies: bool = False) -> Step:
    """An answer that never pauses and never ends."""

    def step(target: ScriptedTarget, request: Received, plan_id: str) -> bytes:
        if applies:
            apply(target, request, plan_id)
        return b"HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\n" + DRIPPED

    return step


DRIPPED = b" " * 4096


@dataclass
class Applied:
    """What the ledger holds of one application."""

    key: str
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def body(self, plan_id: str) -> dict[str, Any]:
        at = self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        result = {"refund_id": "rf_1"}
        return {
            "plan_id": plan_id,
            "status": "applied",
            "result": result,
            "first_applied_at": at,
        }


class ScriptedTarget:
    """Answers on loopback. `commits` and `reads` are what arrived, `applications` what it did."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.commits: list[Received] = []
        self.reads: list[str] = []
        self.dry_runs: list[Received] = []
        self.applications: list[str] = []
        self.applied: dict[str, Applied] = {}
        # The plans it knows, by ID: what a read tells beside the status.
        self.plans: dict[str, dict[str, Any]] = {}
        # A word, or a whole step, in place of the truth about every plan's state.
        self.says: str | Step | None = None
        self._steps: deque[Step] = deque()
        # Plans of another test, which may come back at any time and take nobody's step.
        self.aside: set[str] = set()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.target = self
        self._address = self._server.server_address

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._address[1]}"

    def play(self, *steps: Step) -> None:
        """What the next commits get, in order."""
        self._steps.extend(steps)

    def keys(self) -> set[str]:
        return {commit.key for commit in self.commits}

    def bodies(self) -> set[bytes]:
        return {commit.body for commit in self.commits}

    def commit(self, request: Received) -> Reply | bytes | None:
        with self.lock:
            self.commits.append(request)
            aside = request.headers["Plan-Id"] in self.aside
            step = self._steps.popleft() if self._steps and not aside else apply
        return step(self, request, request.headers["Plan-Id"])

    def read(self, request: Received, plan_id: str) -> Reply | bytes | None:
        with self.lock:
            self.reads.append(plan_id)
        if callable(self.says):
            return self.says(self, request, plan_id)
        known = self.plans.get(plan_id, {"plan_id": plan_id})
        applied = self.applied.get(plan_id)
        if self.says is None and applied is not None:
            return Reply(200, known | applied.body(plan_id))
        return Reply(200, known | {"status": self.says or "open"})

    def leave(self) -> None:
        """Nobody listens at its address any more."""
        self._server.shutdown()
        self._server.server_close()

    def come_back(self) -> None:
        """It listens again, at the same address."""
        self._server = _Server(self._address, _Handler)
        self._server.target = self
        self.__enter__()

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self.leave()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    target: ScriptedTarget

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hangs up early is the point of many tests."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        request = self._received()
        if self.path.endswith("/dry_run"):
            self.server.target.dry_runs.append(request)
            return self._send(Reply(503, {}))
        return self._send(self.server.target.commit(request))

    def do_GET(self) -> None:
        plan_id = self.path.rsplit("/", 1)[-1]
        self._send(self.server.target.read(self._received(), plan_id))

    def _received(self) -> Received:
        length = int(self.headers.get("Content-Length") or 0)
        return Received(dict(self.headers), self.rfile.read(length), time.monotonic())

    def _send(self, reply: Reply | bytes | None) -> None:
        self.close_connection = True
        data = reply.raw() if isinstance(reply, Reply) else reply
        with contextlib.suppress(OSError):
            if data is not None and data.endswith(DRIPPED):
                self._drip(data)
            elif data is not None:
                self.wfile.write(data)

    def _drip(self, data: bytes) -> None:
        head, body = data[: -len(DRIPPED)], DRIPPED
        self.wfile.write(head)
        for position in range(len(body)):
            if self.server.target.closing.wait(0.02):
                return
            self.wfile.write(body[position : position + 1])

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

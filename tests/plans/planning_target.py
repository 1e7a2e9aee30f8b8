"""A target on loopback with billing's interface: it behaves until a test tells it otherwise."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

type Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """Status and body; bytes go out as they are, None hangs up without an answer."""

    status: int
    body: Body | bytes | list[Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)


HANG_UP = Reply(0)
type Script = Callable[[Seen], Reply]


def in_seconds(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def dry_run(inputs: Body | None = None, /, **members: Any) -> Body:
    """A dry-run response, with a plan ID and a token of its own."""
    wish = inputs or {"amount_cents": 48000, "invoice_id": "4412"}
    thing = f"invoice/{wish['invoice_id']}"
    change = {"op": "update", "target": thing}
    return {
        "plan_id": f"plan_{secrets.token_hex(8)}",
        "plan_token": f"ptok_{secrets.token_hex(24)}",
        "expires_at": in_seconds(600),
        "input_fingerprint": f"sha256:{secrets.token_hex(16)}",
        "actions": [
            {**change, "field": "refunded_cents", "from": 0, "to": wish["amount_cents"]},
            {**change, "field": "status", "from": "paid", "to": "refunded"},
        ],
        "covers": [thing],
        "created_at": in_seconds(0),
        **members,
    }


class PlanningTarget:
    """Remembers every request; `script[name]` answers `dry_run`, `read` or `commit` instead."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.server = server
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        self.seen: list[Seen] = []
        self.script: dict[str, Script] = {}
        self.plans: dict[str, Body] = {}
        self.applied: list[str] = []
        self._lock = threading.Lock()

    def knows(self, plan: Body, inputs: Body | None = None) -> Body:
        """The plan as a read tells it from now on; the answer is that read-back."""
        told = {name: value for name, value in plan.items() if name != "plan_token"}
        wish = inputs or {"amount_cents": 48000, "invoice_id": "4412"}
        self.plans[plan["plan_id"]] = {**told, "inputs": wish, "status": "open"}
        return self.plans[plan["plan_id"]]

    def calls(self, name: str) -> list[Seen]:
        return [seen for seen in self.seen if _name_of(seen) == name]

    def answer(self, seen: Seen) -> Reply:
        name = _name_of(seen)
        with self._lock:
            self.seen.append(seen)
        script = self.script.get(name)
        return script(seen) if script else self._behave(name, seen)

    def _behave(self, name: str, seen: Seen) -> Reply:
        if name == "dry_run":
            wish = json.loads(seen.body)
            plan = dry_run(wish)
            self.knows(plan, wish)
            return Reply(200, plan)
        plan_id = seen.path.rpartition("/")[2] if name == "read" else seen.headers["plan-id"]
        if plan_id not in self.plans:
            return Reply(404, {"code": "unknown-plan"})
        if name == "read":
            return Reply(200, self.plans[plan_id])
        with self._lock:
            self.applied.append(plan_id)
        self.plans[plan_id]["status"] = "applied"
        return Reply(200, {"plan_id": plan_id, "status": "applied", "result": {"ok": True}})


def _name_of(seen: Seen) -> str:
    return "read" if seen.method == "GET" else seen.path.rpartition("/")[2]


def always(status: int, body: Body | bytes | list[Any] | None = None, **headers: str) -> Script:
    return lambda _: Reply(status, body, headers)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    target: PlanningTarget

    def handle_one(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(self.command, self.path, headers, self.rfile.read(length))
        reply = self.target.answer(seen)
        self.close_connection = True
        if reply is HANG_UP:
            return
        text = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = handle_one

    def log_message(self, *_: Any) -> None:
        """Nothing: what the target thinks is no part of a test's output."""


@contextmanager
def running() -> Iterator[PlanningTarget]:
    """The target on a free port, until the block ends."""
    handler = type("Handler", (_Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        target = PlanningTarget(server)
        handler.target = target  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield target
        server.shutdown()
        thread.join()

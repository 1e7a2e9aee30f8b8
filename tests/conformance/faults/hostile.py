"""Targets that hang, lie and shout."""

from __future__ import annotations

import time
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.conformance.counting import Ask, Counting, Plan, Refusal, Reply
from tests.conformance.faults.fault import Fault


class Hangs(Counting):
    """Takes the request for a commit and says nothing."""

    def commit(self, ask: Ask) -> Reply:
        time.sleep(4)
        return super().commit(ask)


class HangsAlways(Counting):
    def answer(self, ask: Ask) -> Reply:
        time.sleep(2)
        return super().answer(ask)


class Drips(Counting):
    """A byte at a time, for as long as anybody listens."""

    def say(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(40):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)


class Floods(Counting):
    def say(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        super().say(handler, Reply(200, b" " * 2**21))


class HangsUp(Counting):
    def say(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{")
        handler.close_connection = True


class Redirects(Counting):
    def answer(self, ask: Ask) -> Reply:
        return Reply(307, b"", {"Location": "http://127.0.0.1:9/"})


SHOUT = "\x1b[2J\x1b]0;owned\x07\u202eforged\n\nok      everything"


class Shouts(Counting):
    """Steers the terminal, forges lines, and repeats every secret that it was told."""

    def refused(self, refusal: Refusal) -> Reply:
        reply = super().refused(refusal)
        secret = f"{SHOUT}-{self.heard}"
        members = {"code": secret, "type": secret, "title": secret, "detail": secret}
        return Reply(500, reply.body | members, reply.headers)

    heard = ""

    def answer(self, ask: Ask) -> Reply:
        self.heard = ask.headers.get("authorization", "").removeprefix("Bearer ") or self.heard
        return super().answer(ask)


class DeepAnswers(Counting):
    def read_back(self, plan: Plan) -> dict[str, Any]:
        deep: Any = 1
        for _ in range(200):
            deep = [deep]
        return super().read_back(plan) | {"log": deep}


_CLOCK = frozenset({"clock"})
_STATES = frozenset({"agent-commits", "commit", "at-once", "after-apply", "final"})
FAULTS = (
    Fault(Hangs, "commit", "POST /add/commit: no answer in time", alone=True, seconds=1.0),
    Fault(Drips, "dry-run", "no answer in time", _CLOCK, seconds=0.4),
    Fault(Floods, "dry-run", "an answer of more than 1 MiB", _CLOCK),
    Fault(HangsUp, "dry-run", "an answer that is no HTTP", _CLOCK),
    Fault(Redirects, "dry-run", "answered 307 instead of 200"),
    Fault(DeepAnswers, "read-back", "nested deeper than 32 levels", _STATES),
)

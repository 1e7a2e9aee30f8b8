"""Credentials, the clock, refusals, and what a body may be."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from typing import Any

from tests.conformance.counting import Ask, Counting, Plan, Refusal, Reply
from tests.conformance.faults.fault import Fault


class OpenToAll(Counting):
    def admit(self, ask: Ask) -> None:
        if ask.who == "agent" and ask.path == "/add/commit":
            raise Refusal(403, "forbidden")


class OpenReads(Counting):
    def admit(self, ask: Ask) -> None:
        if not ask.path.startswith("/plans/"):
            super().admit(ask)


class AgentCommits(Counting):
    def admit(self, ask: Ask) -> None:
        if ask.who == "nobody":
            raise Refusal(401, "unauthenticated")


class AgentShutOut(Counting):
    def admit(self, ask: Ask) -> None:
        super().admit(ask)
        if ask.who == "agent":
            raise Refusal(403, "forbidden")


class FastClock(Counting):
    def date(self) -> str | None:
        return formatdate(time.time() + 300, usegmt=True)


class NoClock(Counting):
    def date(self) -> str | None:
        return None


class HtmlRefusals(Counting):
    def refused(self, refusal: Refusal) -> Reply:
        return Reply(refusal.status, b"<h1>No</h1>", {"Content-Type": "text/html"})


class NamelessRefusals(Counting):
    def refused(self, refusal: Refusal) -> Reply:
        reply = super().refused(refusal)
        keep = {k: v for k, v in reply.body.items() if k not in ("type", "code")}
        return Reply(reply.status, keep, reply.headers)


class LyingStatus(Counting):
    def refused(self, refusal: Refusal) -> Reply:
        reply = super().refused(refusal)
        return Reply(reply.status, reply.body | {"status": 200}, reply.headers)


class BreaksOnBadJson(Counting):
    def parse(self, ask: Ask) -> dict[str, Any]:
        try:
            json.loads(ask.body)
        except ValueError:
            raise Refusal(500, "internal-error") from None
        return super().parse(ask)


class LenientJson(Counting):
    def parse(self, ask: Ask) -> dict[str, Any]:
        if b"NaN" in ask.body or b"0061" in ask.body:
            return {"counter": "stock", "add": 1}
        return super().parse(ask)


class TakesAnySize(Counting):
    def parse(self, ask: Ask) -> dict[str, Any]:
        body = ask.body.rstrip()
        return super().parse(Ask(ask.method, ask.path, ask.headers, body, ask.who))


class BreaksOnDepth(Counting):
    def parse(self, ask: Ask) -> dict[str, Any]:
        if ask.body.count(b"[") > 100:
            raise Refusal(500, "recursion-error")
        return super().parse(ask)


class HugeReadBack(Counting):
    def read_back(self, plan: Plan) -> dict[str, Any]:
        return super().read_back(plan) | {"log": ["a" * 60_000] * 5}


FAULTS = (
    Fault(OpenToAll, "credentials", "a dry run without a credential answered 200"),
    Fault(OpenReads, "credentials", "reading a plan without a credential answered 200"),
    Fault(AgentCommits, "agent-commits", "the agent's credential committed a plan"),
    Fault(AgentShutOut, "agent-commits", "makes a dry run and is refused"),
    Fault(FastClock, "clock", "the target's clock is 300 s ahead of ours"),
    Fault(NoClock, "clock", "no `Date` header"),
    Fault(
        HtmlRefusals,
        "problems",
        "has the type “text/html”, not problem+json",
        frozenset({"key-reused", "conflict"}),
    ),
    Fault(NamelessRefusals, "problems", "has neither `code` nor `type`", frozenset({"key-reused"})),
    Fault(LyingStatus, "problems", "says status 200 in a 4"),
    Fault(BreaksOnBadJson, "problems", "a body that is not JSON answered 500"),
    Fault(LenientJson, "problems", "a name that stands twice answered 200"),
    Fault(TakesAnySize, "sizes", "nothing limits what one request may cost"),
    Fault(BreaksOnDepth, "sizes", "a request broke the server"),
    Fault(HugeReadBack, "sizes", "larger than 256 KiB", frozenset({"read-back"})),
)

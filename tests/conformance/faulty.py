"""The counting target with one fault each: the mistakes that owners of targets make."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.conformance.counting import Ask, Counting, Plan, Refusal, Reply, digest


@dataclass(frozen=True)
class Fault:
    """What is broken, which check catches it, and words that its finding says."""

    target: Callable[[], Counting]
    check: str
    says: str
    also: frozenset[str] = frozenset()
    """Other checks that rightly find it, too."""
    alone: bool = False
    """It takes long: no other check is made."""
    seconds: float = 5.0
    """The longest that a call may take: short for a target that never answers in time."""


# ── The dry run and the read-back ────────────────────────────────────────────────────────────────
class NoFingerprint(Counting):
    def told(self, plan: Plan) -> dict[str, Any]:
        return {k: v for k, v in super().told(plan).items() if k != "input_fingerprint"}


class TimeWithoutOffset(Counting):
    def facts(self, plan: Plan) -> dict[str, Any]:
        return super().facts(plan) | {"expires_at": plan.expires_at.isoformat()[:19]}


class NoTimeToDecide(Counting):
    window = timedelta(seconds=20)


class NothingPlanned(Counting):
    def facts(self, plan: Plan) -> dict[str, Any]:
        return super().facts(plan) | {"actions": []}


class OnePlanForAll(Counting):
    def make(self, inputs: dict[str, Any], raw: bytes, window: timedelta) -> Plan:
        known = next(iter(self.plans.values()), None)
        return known or super().make(inputs, raw, window)


class NameTwice(Counting):
    def dry_run(self, ask: Ask) -> Reply:
        reply = super().dry_run(ask)
        return Reply(200, reply.raw()[:-1] + b',"plan_id":"other"}')


class HtmlPlan(Counting):
    def dry_run(self, ask: Ask) -> Reply:
        super().dry_run(ask)
        return Reply(200, b"<h1>Planned!</h1>", {"Content-Type": "text/html"})


class DryRunWrites(Counting):
    def dry_run(self, ask: Ask) -> Reply:
        reply = super().dry_run(ask)
        if reply.status == 200:
            self.counters["stock"] += 1
        return reply


class ReadsAnotherPlan(Counting):
    """Plans again for every read."""

    def read_back(self, plan: Plan) -> dict[str, Any]:
        told = super().read_back(plan)
        return told | {"actions": [{**told["actions"][0], "to": 99}]}


class ReadsAnotherTime(Counting):
    def read_back(self, plan: Plan) -> dict[str, Any]:
        return super().read_back(plan) | {"expires_at": "2031-01-01T00:00:00Z"}


class RoundsInputs(Counting):
    def read_back(self, plan: Plan) -> dict[str, Any]:
        return super().read_back(plan) | {"inputs": {**plan.inputs, "add": 2}}


class ReadsAnything(Counting):
    def read(self, plan_id: str) -> Reply:
        if plan_id not in self.plans:
            return Reply(200, {"plan_id": plan_id, "status": "open"})
        return super().read(plan_id)


# ── The fingerprint ──────────────────────────────────────────────────────────────────────────────
class HashesTheBody(Counting):
    def fingerprint(self, inputs: dict[str, Any], raw: bytes, state: int) -> str:
        return f"sha256:{hashlib.sha256(raw + str(state).encode()).hexdigest()}"


class HashesTheMoment(Counting):
    def fingerprint(self, inputs: dict[str, Any], raw: bytes, state: int) -> str:
        return digest([inputs, state, time.time_ns()])


class HashesOnlyInputs(Counting):
    def fingerprint(self, inputs: dict[str, Any], raw: bytes, state: int) -> str:
        return digest(inputs)


class AnyFingerprint(Counting):
    def check_fingerprint(self, plan: Plan, fingerprint: object) -> None:
        """Whatever comes is right."""


# ── The token ────────────────────────────────────────────────────────────────────────────────────
class HashedId(Counting):
    def token(self, plan_id: str, fingerprint: str, inputs: dict[str, Any]) -> str:
        return hashlib.sha256(plan_id.encode()).hexdigest()


class CountedToken(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.next = itertools.count(1_000_000)

    def token(self, plan_id: str, fingerprint: str, inputs: dict[str, Any]) -> str:
        return f"secret-plan-token-of-the-target-{next(self.next)}"


class TellingToken(Counting):
    def token(self, plan_id: str, fingerprint: str, inputs: dict[str, Any]) -> str:
        told = json.dumps({"id": plan_id, "inputs": inputs}).encode()
        return base64.urlsafe_b64encode(told).decode().rstrip("=")


class TokenWithId(Counting):
    def token(self, plan_id: str, fingerprint: str, inputs: dict[str, Any]) -> str:
        return f"{plan_id}.{super().token(plan_id, fingerprint, inputs)}"


class TokenReadBack(Counting):
    def read_back(self, plan: Plan) -> dict[str, Any]:
        return super().read_back(plan) | {"plan_token": plan.token}


class TokenInHeader(Counting):
    def read(self, plan_id: str) -> Reply:
        reply = super().read(plan_id)
        return Reply(200, reply.body, {"Location": f"/commit?token={self.plans[plan_id].token}"})


# ── The edge ─────────────────────────────────────────────────────────────────────────────────────
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


# ── Commits ──────────────────────────────────────────────────────────────────────────────────────
class NoKeyNeeded(Counting):
    def key(self, ask: Ask) -> str:
        return ask.headers.get("idempotency-key") or "none"


class SaysNothing(Counting):
    def apply(self, plan: Plan) -> Reply:
        super().apply(plan)
        return Reply(204, b"")


class NamesNoPlan(Counting):
    def success(self, plan: Plan) -> Any:
        return {"status": "applied", "result": plan.result}


class SaysAccepted(Counting):
    def success(self, plan: Plan) -> Any:
        return super().success(plan) | {"status": "accepted"}


class ForgetsResult(Counting):
    def read_back(self, plan: Plan) -> dict[str, Any]:
        return super().read_back(plan) | ({"result": None} if plan.status == "applied" else {})


class StaysOpen(Counting):
    """Applied plans read back as open."""

    def read_back(self, plan: Plan) -> dict[str, Any]:
        told = super().read_back(plan)
        return told | ({"status": "open"} if plan.status == "applied" else {})


class NoStore(Counting):
    """The same key a second time is a first time."""

    def stored(self, key: str, request: bytes) -> Reply | None:
        return None


class SilentReplay(Counting):
    def stored(self, key: str, request: bytes) -> Reply | None:
        found = super().stored(key, request)
        return None if found is None else Reply(found.status, found.body)


class ReplayWithoutResult(Counting):
    def stored(self, key: str, request: bytes) -> Reply | None:
        found = super().stored(key, request)
        if found is None or found.status != 200:
            return found
        return Reply(200, found.body | {"result": "already done"}, found.headers)


class AppliesForEveryKey(Counting):
    """Neither key nor plan is looked at: each commit happens."""

    def commit(self, ask: Ask) -> Reply:
        body = self.parse(ask)
        self.key(ask)
        with self.lock:
            plan = self.find(body)
            if plan.status == "applied":
                return self.apply(plan)
        return super().commit(ask)


class KeyForAnyBody(Counting):
    def stored(self, key: str, request: bytes) -> Reply | None:
        known = self.keys.get(key)
        return super().stored(key, known[0] if known else request)


class ReuseIsConflict(Counting):
    def stored(self, key: str, request: bytes) -> Reply | None:
        if key in self.keys and self.keys[key][0] != request:
            raise Refusal(409, "key-in-use")
        return super().stored(key, request)


class ReuseWithoutCode(Counting):
    def stored(self, key: str, request: bytes) -> Reply | None:
        if key in self.keys and self.keys[key][0] != request:
            raise Refusal(422, "invalid-request")
        return super().stored(key, request)


class Races(Counting):
    """Looks, thinks, then acts: without a lock."""

    def commit(self, ask: Ask) -> Reply:
        body, key = self.parse(ask), self.key(ask)
        request = hashlib.sha256(ask.body).digest()
        stored = self.stored(key, request)
        if stored is not None:
            return stored
        plan = self.find(body)
        if plan.status == "applied":
            raise Refusal(409, "plan-already-applied")
        moved = self.has_moved(plan)
        time.sleep(0.15)
        reply = self.settle(plan) if moved or plan.status != "open" else self.apply(plan)
        self.store(key, request, reply)
        return reply


class BreaksUnderLoad(Counting):
    """A lock that fails in place of waiting."""

    def commit(self, ask: Ask) -> Reply:
        if not self.lock.acquire(blocking=False):
            raise Refusal(500, "deadlock")
        try:
            time.sleep(0.15)
            return super().commit(ask)
        finally:
            self.lock.release()


class AppliesAgain(Counting):
    """A new key applies an applied plan once more."""

    def find(self, body: dict[str, Any]) -> Plan:
        plan = super().find(body)
        if plan.status == "applied":
            plan.status, plan.planned = "open", self.counters[plan.counter]
        return plan


class AppliedIsUnknown(Counting):
    def find(self, body: dict[str, Any]) -> Plan:
        plan = super().find(body)
        if plan.status == "applied":
            raise Refusal(404, "unknown-plan-token")
        return plan


class ForgetsKeys(Counting):
    """Remembers the last three keys: a cache is no store."""

    def store(self, key: str, request: bytes, reply: Reply) -> None:
        super().store(key, request, reply)
        while len(self.keys) > 3:
            self.keys.pop(next(iter(self.keys)))


# ── Conflicts and expiry ─────────────────────────────────────────────────────────────────────────
class IgnoresTheWorld(Counting):
    def has_moved(self, plan: Plan) -> bool:
        return False


class BareConflict(Counting):
    def moved(self, plan: Plan) -> Refusal:
        return Refusal(409, "state-changed")


class ConflictWithoutPath(Counting):
    def moved(self, plan: Plan) -> Refusal:
        members = super().moved(plan).members
        return Refusal(409, "state-changed", **members | {"changed": [{"field": "value"}]})


class ConflictWithoutTime(Counting):
    def moved(self, plan: Plan) -> Refusal:
        members = super().moved(plan).members
        return Refusal(409, "state-changed", **members | {"plan_created_at": None})


class ConflictIsServerError(Counting):
    def moved(self, plan: Plan) -> Refusal:
        return Refusal(500, "serialization-failure")


class ChangesItsMind(Counting):
    """Compares anew at every commit: when the world moves back, a refused plan is applied."""

    def settle(self, plan: Plan) -> Reply:
        if plan.status == "not_applied" and not self.has_moved(plan):
            plan.status = "open"
        return super().settle(plan)


class RefusedIsApplied(Counting):
    """A refused plan is applied when somebody insists with a new key."""

    def settle(self, plan: Plan) -> Reply:
        return self.apply(plan) if plan.status == "not_applied" else super().settle(plan)


class NeverExpires(Counting):
    def grow_old(self, plan: Plan) -> None:
        """Time passes elsewhere."""


class ExpiresOnlyInWords(Counting):
    """Reads back as expired, and is applied all the same."""

    def settle(self, plan: Plan) -> Reply:
        if plan.status == "open" and not self.has_moved(plan):
            return self.apply(plan)
        return super().settle(plan)


class LateIsConflict(Counting):
    def refused(self, refusal: Refusal) -> Reply:
        if refusal.code == "expired":
            refusal = Refusal(409, "too-late")
        return super().refused(refusal)


# ── Targets that hang, lie and shout ─────────────────────────────────────────────────────────────
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
_AT_ONCE = frozenset({"at-once"})
_RETENTION = frozenset({"key-retention"})
_REUSE = frozenset({"key-reused"})
_AFTER = frozenset({"after-apply"})
_SAME_KEY = _RETENTION | _AT_ONCE | _AFTER
_PROBLEMS = frozenset({"key-reused", "conflict"})
_ONE_PLAN = frozenset({"opaque-token", "commit", "at-once"})
_STATES = frozenset({"agent-commits", "commit", "at-once", "after-apply", "final"})
FAULTS = (
    Fault(NoFingerprint, "dry-run", "`input_fingerprint` is not a string"),
    Fault(TimeWithoutOffset, "dry-run", "`expires_at` is no RFC 3339 time with an offset"),
    Fault(NoTimeToDecide, "dry-run", "lives 20 s; people need 60 s"),
    Fault(NothingPlanned, "dry-run", "`actions` is no list of 1 to 20"),
    Fault(NameTwice, "dry-run", "not one strict JSON object"),
    Fault(HtmlPlan, "dry-run", "not one strict JSON object"),
    Fault(Redirects, "dry-run", "answered 307 instead of 200"),
    Fault(Drips, "dry-run", "no answer in time", _CLOCK, seconds=0.4),
    Fault(Floods, "dry-run", "an answer of more than 1 MiB", _CLOCK),
    Fault(HangsUp, "dry-run", "an answer that is no HTTP", _CLOCK),
    Fault(
        OnePlanForAll,
        "dry-run",
        "two dry runs were given one `plan_id`",
        frozenset({"opaque-token", "commit", "at-once"}),
    ),
    Fault(DryRunWrites, "dry-run", "does a dry run write?", alone=True),
    Fault(ReadsAnotherPlan, "read-back", "`actions` reads back differently"),
    Fault(ReadsAnotherTime, "read-back", "`expires_at` reads back as another time"),
    Fault(RoundsInputs, "read-back", "`inputs` reads back differently"),
    Fault(ReadsAnything, "read-back", "never given out answered 200 instead of 404"),
    Fault(DeepAnswers, "read-back", "nested deeper than 32 levels", _STATES),
    Fault(HashesTheBody, "key-order", "names in another order gave another fingerprint"),
    Fault(HashesTheMoment, "key-order", "byte for byte, over the same state"),
    Fault(HashesOnlyInputs, "state-moves", "the fingerprint stayed the same"),
    Fault(HashedId, "opaque-token", "a hash or an encoding of the plan ID"),
    Fault(CountedToken, "opaque-token", "bits to guess, and 128 are needed"),
    Fault(TellingToken, "opaque-token", "can be decoded, and tells what the plan is about"),
    Fault(TokenWithId, "opaque-token", "is, or holds, the plan ID"),
    Fault(TokenReadBack, "opaque-token", "the read-back holds the plan token"),
    Fault(TokenInHeader, "opaque-token", "a header of the read-back holds the plan token"),
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
    Fault(NamelessRefusals, "problems", "has neither `code` nor `type`", _REUSE),
    Fault(LyingStatus, "problems", "says status 200 in a 4"),
    Fault(BreaksOnBadJson, "problems", "a body that is not JSON answered 500"),
    Fault(LenientJson, "problems", "a name that stands twice answered 200"),
    Fault(TakesAnySize, "sizes", "nothing limits what one request may cost"),
    Fault(BreaksOnDepth, "sizes", "a request broke the server"),
    Fault(HugeReadBack, "sizes", "larger than 256 KiB", frozenset({"read-back"})),
    Fault(NoKeyNeeded, "key-needed", "without an Idempotency-Key was carried out"),
    Fault(AnyFingerprint, "fingerprint-bound", "another fingerprint was carried out"),
    Fault(SaysNothing, "commit", "the commit answered 204, and the answer has no body", _AT_ONCE),
    Fault(NamesNoPlan, "commit", "the success names another `plan_id`, or none", _AT_ONCE),
    Fault(SaysAccepted, "commit", "the success has `status` “accepted”", _AT_ONCE),
    Fault(ForgetsResult, "commit", "reads back with another `result`"),
    Fault(StaysOpen, "commit", "reads back as “open”, not applied", _AT_ONCE | _AFTER),
    Fault(Hangs, "commit", "POST /add/commit: no answer in time", alone=True, seconds=1.0),
    Fault(
        NoStore,
        "replay",
        "the same key again answered 409 “plan-already-applied” instead",
        _RETENTION | _REUSE,
    ),
    Fault(SilentReplay, "replay", "without `Idempotent-Replayed: true`", _AT_ONCE),
    Fault(ReplayWithoutResult, "replay", "gave another answer than the stored one", _RETENTION),
    Fault(
        AppliesForEveryKey,
        "replay",
        "the same key again changed the world a second time",
        _SAME_KEY,
    ),
    Fault(KeyForAnyBody, "key-reused", "with another plan's body answered 200"),
    Fault(ReuseIsConflict, "key-reused", "answered 409 “key-in-use” instead of 422"),
    Fault(ReuseWithoutCode, "key-reused", "the 422 for a reused key has the code"),
    Fault(Races, "at-once", "of 4 commits at once with one key say that they applied it"),
    Fault(BreaksUnderLoad, "at-once", "commits at once with one key answered 500 “deadlock”"),
    Fault(AppliesAgain, "after-apply", "an applied plan with a new key answered 200", _AT_ONCE),
    Fault(AppliedIsUnknown, "after-apply", "409 says “look first”"),
    Fault(ForgetsKeys, "key-retention", "the first key of this run was forgotten by its end"),
    Fault(IgnoresTheWorld, "conflict", "the plan was applied all the same"),
    Fault(BareConflict, "conflict", "no `changed` that names at least one path"),
    Fault(ConflictWithoutPath, "conflict", "`changed/0` of the 409 has no `path`"),
    Fault(ConflictWithoutTime, "conflict", "no `plan_created_at`"),
    Fault(ConflictIsServerError, "conflict", "“serialization-failure” instead of 409"),
    Fault(ChangesItsMind, "final", "was applied by a new key after it said “not_applied”"),
    Fault(RefusedIsApplied, "final", "was applied by a new key after it said “not_applied”"),
    Fault(NeverExpires, "expired", "reads back as “open”, not expired", alone=True),
    Fault(ExpiresOnlyInWords, "expiry", "past its `expires_at` was applied", alone=True),
    Fault(LateIsConflict, "expiry", "answered 409 “too-late” instead of 410", alone=True),
)

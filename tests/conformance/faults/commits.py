"""Commits that happen without a word, twice, or for any key."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from tests.conformance.counting import Ask, Counting, Plan, Refusal, Reply
from tests.conformance.faults.fault import Fault


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


_AT_ONCE = frozenset({"at-once"})
_RETENTION = frozenset({"key-retention"})
_REUSE = frozenset({"key-reused"})
_AFTER = frozenset({"after-apply"})
_SAME_KEY = _RETENTION | _AT_ONCE | _AFTER
FAULTS = (
    Fault(NoKeyNeeded, "key-needed", "without an Idempotency-Key was carried out"),
    Fault(SaysNothing, "commit", "the commit answered 204, and the answer has no body", _AT_ONCE),
    Fault(NamesNoPlan, "commit", "the success names another `plan_id`, or none", _AT_ONCE),
    Fault(SaysAccepted, "commit", "the success has `status` “accepted”", _AT_ONCE),
    Fault(ForgetsResult, "commit", "reads back with another `result`"),
    Fault(StaysOpen, "commit", "reads back as “open”, not applied", _AT_ONCE | _AFTER),
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
)

"""A small target that keeps the whole contract: it counts. Its faults are in `faults`.

State is in memory and under one lock, so that every method can be read, and broken, by itself.
Inputs are `{"counter": "stock", "add": 1}`.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.conformance.reading import strict_json

APP, AGENT = "app-credential-of-the-tests", "agent-credential-of-the-tests"
LARGEST, DEEPEST = 65_536, 32


@dataclass
class Plan:
    plan_id: str
    token: str
    fingerprint: str
    inputs: dict[str, Any]
    counter: str
    planned: int
    created_at: datetime
    expires_at: datetime
    status: str = "open"
    result: dict[str, Any] | None = None
    changed: list[dict[str, Any]] | None = None


@dataclass(frozen=True)
class Ask:
    """One request: `who` is app, agent or nobody."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    who: str


@dataclass(frozen=True)
class Reply:
    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)

    def raw(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Refusal(Exception):
    def __init__(self, status: int, code: str, **members: Any) -> None:
        super().__init__(code)
        self.status, self.code, self.members = status, code, members


def rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now() -> datetime:
    return datetime.now(UTC)


class Counting:
    """The target that conforms."""

    window = timedelta(minutes=10)

    def __init__(self) -> None:
        self.counters = {"stock": 0}
        self.plans: dict[str, Plan] = {}
        self.keys: dict[str, tuple[bytes, Reply]] = {}
        self.lock = threading.RLock()
        self.applied = 0
        self.calls = 0

    # ── The edge ────────────────────────────────────────────────────────────────────────────
    def answer(self, ask: Ask) -> Reply:
        self.calls += 1
        try:
            return self.route(ask)
        except Refusal as refusal:
            return self.refused(refusal)

    def route(self, ask: Ask) -> Reply:
        self.admit(ask)
        match ask.method, ask.path:
            case "POST", "/add/dry_run":
                return self.dry_run(ask)
            case "POST", "/add/commit":
                return self.commit(ask)
            case "POST", "/move":
                with self.lock:
                    self.counters["stock"] += json.loads(ask.body)["by"]
                return Reply(200, {})
            case "GET", path if path.startswith("/plans/"):
                return self.read(path.removeprefix("/plans/"))
        raise Refusal(404, "not-found")

    def admit(self, ask: Ask) -> None:
        if ask.who == "nobody":
            raise Refusal(401, "unauthenticated")
        if ask.who == "agent" and ask.path in ("/add/commit", "/move"):
            raise Refusal(403, "forbidden")

    def refused(self, refusal: Refusal) -> Reply:
        body: dict[str, Any] = {"type": f"urn:counting:{refusal.code}", "title": refusal.code}
        body |= {"status": refusal.status, "code": refusal.code, **refusal.members}
        return Reply(refusal.status, body, {"Content-Type": "application/problem+json"})

    def parse(self, ask: Ask) -> dict[str, Any]:
        if ask.headers.get("content-type") != "application/json":
            raise Refusal(415, "unsupported-media-type")
        if "content-encoding" in ask.headers:
            raise Refusal(415, "unsupported-media-type")
        if len(ask.body) > LARGEST:
            raise Refusal(413, "too-large")
        try:
            found = strict_json(ask.body)
        except (ValueError, RecursionError):
            raise Refusal(400, "malformed-json") from None
        if not isinstance(found, dict):
            raise Refusal(422, "not-an-object")
        return found

    # ── Plans ───────────────────────────────────────────────────────────────────────────────
    def dry_run(self, ask: Ask) -> Reply:
        inputs = self.parse(ask)
        if set(inputs) != {"counter", "add"} or inputs["counter"] not in self.counters:
            raise Refusal(422, "invalid-request")
        short = ask.headers.get("plan-milliseconds")
        window = timedelta(milliseconds=int(short)) if short else self.window
        with self.lock:
            plan = self.make(inputs, ask.body, window)
            self.plans[plan.plan_id] = plan
        return Reply(200, self.told(plan))

    def make(self, inputs: dict[str, Any], raw: bytes, window: timedelta) -> Plan:
        planned, plan_id = self.counters[inputs["counter"]], f"plan_{secrets.token_hex(8)}"
        fingerprint = self.fingerprint(inputs, raw, planned)
        return Plan(
            plan_id=plan_id,
            token=self.token(plan_id, fingerprint, inputs),
            fingerprint=fingerprint,
            inputs=inputs,
            counter=inputs["counter"],
            planned=planned,
            created_at=now(),
            expires_at=now() + window,
        )

    def token(self, plan_id: str, fingerprint: str, inputs: dict[str, Any]) -> str:
        return secrets.token_urlsafe(32)

    def fingerprint(self, inputs: dict[str, Any], raw: bytes, state: int) -> str:
        return digest({"inputs": inputs, "state": state})

    def facts(self, plan: Plan) -> dict[str, Any]:
        after = plan.planned + plan.inputs["add"]
        change = {"op": "update", "target": f"counter/{plan.counter}", "field": "value"}
        return {
            "plan_id": plan.plan_id,
            "input_fingerprint": plan.fingerprint,
            "expires_at": rfc3339(plan.expires_at),
            "created_at": rfc3339(plan.created_at),
            "actions": [{**change, "from": plan.planned, "to": after}],
            "covers": [f"counter/{plan.counter}"],
        }

    def told(self, plan: Plan) -> dict[str, Any]:
        """What the dry run answers."""
        return {**self.facts(plan), "plan_token": plan.token}

    def read(self, plan_id: str) -> Reply:
        with self.lock:
            plan = self.plans.get(plan_id)
            if plan is None:
                raise Refusal(404, "unknown-plan")
            self.grow_old(plan)
            return Reply(200, self.read_back(plan))

    def read_back(self, plan: Plan) -> dict[str, Any]:
        more = {"result": plan.result} if plan.status == "applied" else {}
        return {**self.facts(plan), "inputs": plan.inputs, "status": plan.status, **more}

    def grow_old(self, plan: Plan) -> None:
        if plan.status == "open" and now() >= plan.expires_at:
            plan.status = "expired"

    # ── Commits ─────────────────────────────────────────────────────────────────────────────
    def commit(self, ask: Ask) -> Reply:
        body, key = self.parse(ask), self.key(ask)
        with self.lock:
            request = hashlib.sha256(ask.body).digest()
            stored = self.stored(key, request)
            if stored is not None:
                return stored
            plan = self.find(body)
            if plan.status == "applied":
                raise Refusal(409, "plan-already-applied")
            reply = self.settle(plan)
            self.store(key, request, reply)
            return reply

    def key(self, ask: Ask) -> str:
        key = ask.headers.get("idempotency-key")
        if not key:
            raise Refusal(400, "idempotency-key-missing")
        return key

    def stored(self, key: str, request: bytes) -> Reply | None:
        if key not in self.keys:
            return None
        known, reply = self.keys[key]
        if known != request:
            raise Refusal(422, "idempotency-key-reused")
        return Reply(reply.status, reply.body, {**reply.headers, "Idempotent-Replayed": "true"})

    def store(self, key: str, request: bytes, reply: Reply) -> None:
        self.keys[key] = request, reply

    def find(self, body: dict[str, Any]) -> Plan:
        token, fingerprint = body.get("plan_token"), body.get("input_fingerprint")
        plan = next((one for one in self.plans.values() if one.token == token), None)
        if plan is None:
            raise Refusal(404, "unknown-plan-token")
        self.check_fingerprint(plan, fingerprint)
        return plan

    def check_fingerprint(self, plan: Plan, fingerprint: object) -> None:
        if fingerprint != plan.fingerprint:
            raise Refusal(422, "fingerprint-mismatch")

    def settle(self, plan: Plan) -> Reply:
        """Decides once; every later commit is answered from what was decided."""
        self.grow_old(plan)
        if plan.status == "open" and self.has_moved(plan):
            current = self.counters[plan.counter]
            plan.status = "not_applied"
            plan.changed = [{"path": "value", "planned": plan.planned, "current": current}]
        match plan.status:
            case "expired":
                return self.refused(Refusal(410, "expired"))
            case "not_applied":
                return self.refused(self.moved(plan))
        return self.apply(plan)

    def has_moved(self, plan: Plan) -> bool:
        return self.counters[plan.counter] != plan.planned

    def moved(self, plan: Plan) -> Refusal:
        members = {"changed": plan.changed, "plan_created_at": rfc3339(plan.created_at)}
        return Refusal(409, "state-changed", **members)

    def apply(self, plan: Plan) -> Reply:
        self.counters[plan.counter] += plan.inputs["add"]
        self.applied += 1
        plan.status = "applied"
        plan.result = {"receipt": secrets.token_hex(4), "value": self.counters[plan.counter]}
        return Reply(200, self.success(plan))

    def success(self, plan: Plan) -> Any:
        return {"plan_id": plan.plan_id, "status": "applied", "result": plan.result}

    # ── What the wire adds ──────────────────────────────────────────────────────────────────
    def date(self) -> str | None:
        return formatdate(usegmt=True)

    def say(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        raw = reply.raw()
        handler.send_response_only(reply.status)
        date = self.date()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(raw))}
        headers |= {} if date is None else {"Date": date}
        for name, value in (headers | reply.headers).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(raw)


def digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

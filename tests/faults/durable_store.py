"""What the durable target knows, in SQLite: killed at any moment, it has lost nothing it said."""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from tests.faults.modes import CHANGED, MODES, Answer, Fault

type Plan = dict[str, Any]
WELL: Final = Fault()

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS plan (plan_id TEXT PRIMARY KEY, token TEXT, document TEXT, state TEXT);
CREATE TABLE IF NOT EXISTS fault (subject TEXT, kind TEXT, mode TEXT, step INT,
  PRIMARY KEY (subject, kind));
CREATE TABLE IF NOT EXISTS arrival (id INTEGER PRIMARY KEY, plan_id TEXT, key TEXT, attempt TEXT,
  body_sha256 TEXT, at REAL);
CREATE TABLE IF NOT EXISTS ledger (id INTEGER PRIMARY KEY, plan_id TEXT, key TEXT,
  body_sha256 TEXT, cents INT, at REAL);
CREATE TABLE IF NOT EXISTS answer (key TEXT PRIMARY KEY, body_sha256 TEXT, status INT, body TEXT,
  at REAL);
"""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit as it arrived. `house`: how this address of the target behaves."""

    plan_id: str
    key: str
    attempt: str
    body: bytes
    retention: float = float("inf")
    offset: float = 0.0

    @property
    def sha256(self) -> str:
        return sha256(self.body).hexdigest()


class Store:
    """One file. Every verb is one transaction that is on the disk before it returns."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        # A file for each plan that was applied, for those who wait for it.
        self._marks = file.parent / "applied"
        self._marks.mkdir(exist_ok=True)
        self._db = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._db.row_factory = sqlite3.Row
        self._db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;" + SCHEMA)
        # What was being applied when the process was killed never was.
        self._db.execute("UPDATE plan SET state = 'open' WHERE state = 'in_progress'")

    def register(self, plans: Iterable[Plan]) -> None:
        """Plans as dry runs made them, their tokens among them."""
        rows = [(p["plan_id"], p["plan_token"], _without_token(p)) for p in plans]
        with self._transaction() as db:
            db.executemany("INSERT INTO plan VALUES (?, ?, ?, 'open')", rows)

    def play(self, orders: Iterable[dict[str, str]]) -> None:
        """`{subject, kind, mode}`: what the next requests about a plan (or an invoice) meet."""
        rows = [(o["subject"], o["kind"], o["mode"]) for o in orders]
        assert all(mode in MODES[kind] for _, kind, mode in rows)
        with self._transaction() as db:
            db.executemany("INSERT OR REPLACE INTO fault VALUES (?, ?, ?, 0)", rows)

    def next_fault(self, subject: str, kind: str) -> Fault:
        """The fault that this request meets; it is used up."""
        with self._transaction() as db:
            return self._next_fault(db, subject, kind)

    def unread_fault(self, plan_id: str) -> Fault | None:
        """The fault that this plan's next commit meets, if it leaves the request unread."""
        with self._transaction() as db:
            fault = self._next_fault(db, plan_id, "commit", use=False)
            return self._next_fault(db, plan_id, "commit") if fault.unread else None

    def commit(self, request: Commit) -> tuple[Fault, Answer]:
        """Note the arrival, and do what the fault or a well target does; what it means to say."""
        with self._transaction() as db:
            fault = self._next_fault(db, request.plan_id, "commit")
            arrived = (request.plan_id, request.key, request.attempt, request.sha256, time.time())
            db.execute(
                "INSERT INTO arrival (plan_id, key, attempt, body_sha256, at)"
                " VALUES (?, ?, ?, ?, ?)",
                arrived,
            )
            return fault, self._react(db, fault, request)

    def finish(self, request: Commit) -> None:
        """Apply what was in progress, long after the caller has given up."""
        with self._transaction() as db:
            if self._plan(db, request.plan_id)["state"] == "in_progress":
                self._apply(db, request)

    def state(self, plan_id: str, offset: float) -> Answer:
        """The truth about a plan; its word is final where the contract says so (T-8)."""
        with self._transaction() as db:
            plan = self._plan(db, plan_id)
            if plan is None:
                return Answer(404, {"code": "unknown-plan"})
            document = json.loads(plan["document"])
            if plan["state"] == "open" and _expired(document, offset):
                self._become(db, plan_id, "expired")
                plan = self._plan(db, plan_id)
            told = document | {"status": plan["state"]}
            if plan["state"] == "applied":
                (first,) = db.execute(
                    "SELECT key, min(at) AS at FROM ledger WHERE plan_id = ?", [plan_id]
                )
                told |= {"result": _result(first["key"]), "first_applied_at": _instant(first["at"])}
            return Answer(200, told)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Everything in `ledger` or `arrival`, oldest first."""
        with self._transaction() as db:
            return [dict(row) for row in db.execute(f"SELECT * FROM {table} ORDER BY id")]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _next_fault(
        self, db: sqlite3.Connection, subject: str, kind: str, *, use: bool = True
    ) -> Fault:
        known = (subject, kind)
        row = db.execute("SELECT * FROM fault WHERE subject = ? AND kind = ?", known).fetchone()
        faults = MODES[kind][row["mode"]] if row else []
        if row is None or row["step"] >= len(faults):
            return WELL
        if use:
            db.execute("UPDATE fault SET step = step + 1 WHERE subject = ? AND kind = ?", known)
        fault: Fault = faults[row["step"]]
        return fault

    def _react(self, db: sqlite3.Connection, fault: Fault, request: Commit) -> Answer:
        plan = self._plan(db, request.plan_id)
        refusal = self._refusal(db, plan, request)
        if refusal is not None:
            return refusal
        match fault.does:
            case "late":
                self._become(db, request.plan_id, "in_progress")
            case "dead":
                self._become(db, request.plan_id, "not_applied")
            case "expire":
                self._become(db, request.plan_id, "expired")
            case "replay" if fault.answer is not None:
                self._keep(db, request, fault.answer)
            case "apply and replay" if fault.answer is not None:
                self._apply(db, request)
                self._keep(db, request, fault.answer)
            case "nothing" if fault is not WELL:
                """It dies before it has done anything."""
            case _:
                self._apply(db, request)
        return Answer(200, _applied(request))

    def _refusal(
        self, db: sqlite3.Connection, plan: sqlite3.Row | None, request: Commit
    ) -> Answer | None:
        """What stands against applying: the key's stored answer, then the plan's own state."""
        if plan is None:
            return Answer(404, {"code": "unknown-plan"})
        document, body = json.loads(plan["document"]), json.loads(request.body)
        told = db.execute("SELECT * FROM answer WHERE key = ?", [request.key]).fetchone()
        if told is not None and told["at"] > time.time() - request.retention:
            if told["body_sha256"] != request.sha256:
                return Answer(422, {"code": "idempotency-key-reused"})
            replayed = {"Idempotent-Replayed": "true"}
            return Answer(told["status"], json.loads(told["body"]), replayed)
        if (body["plan_token"], body["input_fingerprint"]) != (
            plan["token"],
            document["input_fingerprint"],
        ):
            return Answer(422, {"code": "wrong-token"})
        if plan["state"] == "in_progress":
            return Answer(409, {"code": "in-progress"})
        if plan["state"] == "not_applied":
            return Answer(409, CHANGED)
        if plan["state"] == "expired" or _expired(document, request.offset):
            self._become(db, request.plan_id, "expired")
            return Answer(410, {"code": "plan-expired"})
        # Nothing but the key protects it: another key, or a forgotten one, applies it again.
        return None

    def _apply(self, db: sqlite3.Connection, request: Commit) -> None:
        actions = json.loads(self._plan(db, request.plan_id)["document"])["actions"]
        (change,) = [each for each in actions if each["field"] == "refunded_cents"]
        effect = (request.plan_id, request.key, request.sha256, change["to"] - change["from"])
        db.execute(
            "INSERT INTO ledger (plan_id, key, body_sha256, cents, at) VALUES (?, ?, ?, ?, ?)",
            (*effect, time.time()),
        )
        self._become(db, request.plan_id, "applied")
        (self._marks / request.plan_id).touch()
        self._keep(db, request, Answer(200, _applied(request)))

    def _keep(self, db: sqlite3.Connection, request: Commit, answer: Answer) -> None:
        row = (request.key, request.sha256, answer.status, json.dumps(answer.body), time.time())
        db.execute("INSERT OR REPLACE INTO answer VALUES (?, ?, ?, ?, ?)", row)

    def _become(self, db: sqlite3.Connection, plan_id: str, state: str) -> None:
        """What was applied stays applied, whatever is answered later."""
        change = "UPDATE plan SET state = ? WHERE plan_id = ? AND state <> 'applied'"
        db.execute(change, (state, plan_id))

    def _plan(self, db: sqlite3.Connection, plan_id: str) -> Any:
        return db.execute("SELECT * FROM plan WHERE plan_id = ?", [plan_id]).fetchone()


def planned(inputs: dict[str, Any], seconds: float = 600) -> Plan:
    """A dry run's answer, with a plan ID and a token of its own."""
    thing, now = f"invoice/{inputs['invoice_id']}", time.time()
    changes = (("refunded_cents", 0, inputs["amount_cents"]), ("status", "paid", "refunded"))
    return {
        "plan_id": f"plan_{secrets.token_hex(8)}",
        "plan_token": f"ptok_{secrets.token_hex(24)}",
        "expires_at": _instant(now + seconds),
        "created_at": _instant(now),
        "input_fingerprint": f"sha256:{secrets.token_hex(16)}",
        "actions": [
            {"op": "update", "target": thing, "field": name, "from": was, "to": will}
            for name, was, will in changes
        ],
        "covers": [thing],
        "inputs": inputs,
    }


def _without_token(plan: Plan) -> str:
    return json.dumps({name: value for name, value in plan.items() if name != "plan_token"})


def _expired(document: dict[str, Any], offset: float) -> bool:
    return datetime.fromisoformat(document["expires_at"]).timestamp() <= time.time() + offset


def _instant(at: float) -> str:
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _applied(request: Commit) -> dict[str, Any]:
    return {"plan_id": request.plan_id, "status": "applied", "result": _result(request.key)}


def _result(key: str) -> dict[str, str]:
    """The same for the same key."""
    return {"refund_id": f"rf_{sha256(key.encode()).hexdigest()[:12]}"}

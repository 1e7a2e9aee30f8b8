"""The commit: key, result and effect in one transaction."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from psycopg.types.json import Json

from . import invoices, plans
from .database import Connection, Row
from .problems import Problem, not_allowed
from .strict_json import parse_object, unknown_members
from .timestamps import rfc3339

KEY = re.compile(r'"?([\x21\x23-\x5b\x5d-\x7e]{1,255})"?', re.ASCII)


@dataclass(frozen=True)
class Answer:
    """An HTTP answer: a status, the text of a JSON body, and headers."""

    status: int
    text: str
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, body: dict[str, Any], status: int = 200, **headers: str) -> "Answer":
        """An answer with `body` as compact JSON."""
        return cls(status, json.dumps(body, separators=(",", ":")), headers)


def commit(
    connection: Connection,
    key: str | None,
    raw: bytes,
    linger: Callable[[], None] = lambda: None,
) -> Answer:
    """Apply the plan whose token is in the body, once, whatever is repeated.

    `linger` runs while everything is locked: a slow commit for those who test against us.
    Source: 7-interfaces, "The target's side".
    """
    name, request = _key(key), hashlib.sha256(raw).digest()
    token, fingerprint = _body(raw)
    if not _lock_key(connection, name):
        raise Problem(409, "in-progress", "A commit with this Idempotency-Key is running.")
    if stored := _stored(connection, name, request):
        return stored
    plan = _lock_plan(connection, token, fingerprint)
    linger()
    answer = _settle(connection, plan, name)
    connection.execute(
        "INSERT INTO idempotency_keys (key, request_sha256, status, answer)"
        " VALUES (%s, %s, %s, %s)",
        [name, request, answer.status, answer.text],
    )
    return answer


def _key(header: str | None) -> str:
    """The key of the header, bare or as a structured field's quoted string."""
    found = KEY.fullmatch(header or "")
    if found is None:
        raise Problem(400, "idempotency-key-missing", "A commit needs a valid Idempotency-Key.")
    return found[1]


def _body(raw: bytes) -> tuple[str, str]:
    body = parse_object(raw)
    names = ("plan_token", "input_fingerprint")
    found = unknown_members(body, *names) + [
        (f"/{name}", "must be a string, and not empty")
        for name in names
        if not (isinstance(body.get(name), str) and body[name])
    ]
    if found:
        raise not_allowed(*found)
    return body["plan_token"], body["input_fingerprint"]


def _lock_key(connection: Connection, key: str) -> bool:
    row = connection.execute(
        "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 1)) AS got", [key]
    ).fetchone()
    return bool(row and row["got"])


def _stored(connection: Connection, key: str, request: bytes) -> Answer | None:
    # A statement of its own, after the lock: the snapshot of the locking one may be too old.
    row = connection.execute("SELECT * FROM idempotency_keys WHERE key = %s", [key]).fetchone()
    if row is None:
        return None
    if bytes(row["request_sha256"]) != request:
        raise Problem(422, "idempotency-key-reused", "This key was used with another body.")
    return Answer(row["status"], row["answer"], {"Idempotent-Replayed": "true"})


def _lock_plan(connection: Connection, token: str, fingerprint: str) -> Row:
    """The plan and its invoice, locked; the advisory lock is what a read-back looks at."""
    found = connection.execute(
        "SELECT plan_id, pg_advisory_xact_lock(hashtextextended(plan_id, 0))"
        " FROM plans WHERE token_sha256 = %s",
        [plans.token_hash(token)],
    ).fetchone()
    # A statement of its own, after the lock, so that it sees what the last holder wrote.
    row = connection.execute(
        "SELECT plans.*, invoices.amount_cents, invoices.refunded_cents"
        " FROM plans JOIN invoices ON number = invoice_number"
        " WHERE plan_id = %s FOR UPDATE",
        [found and found["plan_id"]],
    ).fetchone()
    if row is None:
        raise Problem(404, "unknown-plan-token", "This plan token is of no plan here.")
    if row["input_fingerprint"] != fingerprint:
        raise Problem(422, "fingerprint-mismatch", "Token and fingerprint are of two plans.")
    return row


def _settle(connection: Connection, plan: Row, key: str) -> Answer:
    if plan["state"] == "applied":
        raise Problem(409, "plan-already-applied", "Applied already, with another key.")
    if plan["state"] == "open":
        plan = {**plan, **_consume(connection, plan)}
    if plan["state"] == "expired":
        return _refusal(Problem(410, "expired", "The plan expired. Make a new dry run."))
    if plan["state"] == "not_applied":
        return _refusal(_moved(plan))
    return _apply(connection, plan, key)


def _consume(connection: Connection, plan: Row) -> Row:
    """Decide, for ever: the clock is read after the locks, and wins over a moved world."""
    changed = None
    if plan["refunded_cents"] != plan["planned_refunded_cents"]:
        # The status follows from the amount: naming it too would be noise.
        change = {"path": "refunded_cents", "target": f"invoice/{plan['invoice_number']}"}
        amounts = {"planned": plan["planned_refunded_cents"], "current": plan["refunded_cents"]}
        changed = Json([change | amounts])
    row = connection.execute(
        "UPDATE plans SET settled_at = clock.now,"
        "  state = CASE WHEN expires_at <= clock.now THEN 'expired' ELSE %(verdict)s END,"
        "  changed = CASE WHEN expires_at > clock.now THEN %(changed)s::json END"
        " FROM (SELECT clock_timestamp() AS now) AS clock"
        " WHERE plan_id = %(plan_id)s AND state = 'open' RETURNING state, settled_at, changed",
        {
            "verdict": "not_applied" if changed else "applied",
            "changed": changed,
            "plan_id": plan["plan_id"],
        },
    ).fetchone()
    return row or plan


def _moved(plan: Row) -> Problem:
    return Problem(
        409,
        "state-changed",
        "The invoice is not as it was planned from. Make a new dry run.",
        plan_id=plan["plan_id"],
        changed=plan["changed"],
        plan_created_at=rfc3339(plan["created_at"]),
    )


def _refusal(problem: Problem) -> Answer:
    return Answer.of(problem.body(), problem.status)


def _apply(connection: Connection, plan: Row, key: str) -> Answer:
    done = {**plan, "refund_id": invoices.new_refund_id()}
    connection.execute(
        "WITH paid AS (UPDATE invoices SET refunded_cents = refunded_cents + %(cents)s"
        "  WHERE number = %(number)s)"
        " INSERT INTO refunds"
        "  (refund_id, invoice_number, amount_cents, plan_id, idempotency_key, applied_at)"
        " VALUES (%(refund)s, %(number)s, %(cents)s, %(plan)s, %(key)s, %(at)s)",
        {
            "cents": plan["refund_cents"],
            "number": plan["invoice_number"],
            "refund": done["refund_id"],
            "plan": plan["plan_id"],
            "key": key,
            "at": plan["settled_at"],
        },
    )
    return Answer.of(
        {
            "plan_id": plan["plan_id"],
            "status": "applied",
            "result": plans.result(done),
            "first_applied_at": rfc3339(plan["settled_at"]),
        }
    )

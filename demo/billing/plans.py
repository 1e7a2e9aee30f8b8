"""The dry run, and the read-back of a plan by its ID."""

import hashlib
import json
import re
import secrets
from datetime import timedelta
from typing import Any

from psycopg.types.json import Json

from . import invoices
from .database import Connection, Row
from .problems import Problem, not_allowed
from .strict_json import cents_errors, parse_object, unknown_members
from .timestamps import rfc3339

PLAN_ID = re.compile(r"plan_[0-9a-f]{16}", re.ASCII)
INSERT = """
    INSERT INTO plans (plan_id, token_sha256, input_fingerprint, invoice_number, inputs, actions,
                       planned_refunded_cents, refund_cents, created_at, expires_at)
    SELECT %(plan_id)s, %(token_sha256)s, %(input_fingerprint)s, %(invoice_number)s, %(inputs)s,
           %(actions)s, %(planned_refunded_cents)s, %(refund_cents)s, clock.now,
           clock.now + %(window)s
    FROM (SELECT date_trunc('milliseconds', clock_timestamp()) AS now) AS clock
    RETURNING *
"""


def dry_run(connection: Connection, raw: bytes, window: timedelta) -> dict[str, Any]:
    """Plan a refund and store the plan: the one answer that ever carries the plan token.

    A wish for more than is left becomes a plan for what is left; nothing left ⇒ 422
    `nothing-to-change`. Source: 7-interfaces, "The target's side".
    """
    inputs = _inputs(raw)
    invoice = invoices.find(connection, inputs["invoice_id"])
    if invoice["status"] == "refunded":
        raise Problem(422, "nothing-to-change", "The invoice is refunded in full already.")
    token = secrets.token_urlsafe(32)
    plan = _store(connection, inputs, invoice, token, window)
    return {"plan_token": token, **_facts(plan)}


def _store(
    connection: Connection, inputs: dict[str, Any], invoice: Row, token: str, window: timedelta
) -> Row:
    refund = min(inputs["amount_cents"], invoice["amount_cents"] - invoice["refunded_cents"])
    columns = {
        "plan_id": f"plan_{secrets.token_hex(8)}",
        "token_sha256": token_hash(token),
        "input_fingerprint": _fingerprint(inputs, invoice),
        "invoice_number": invoice["number"],
        "inputs": Json(inputs),
        "actions": Json(_actions(invoice, refund)),
        "planned_refunded_cents": invoice["refunded_cents"],
        "refund_cents": refund,
        "window": window,
    }
    row = connection.execute(INSERT, columns).fetchone()
    return row or _unknown()


def _inputs(raw: bytes) -> dict[str, Any]:
    inputs = parse_object(raw)
    found = unknown_members(inputs, "amount_cents", "invoice_id") + cents_errors(inputs)
    number = inputs.get("invoice_id")
    if not (isinstance(number, str) and invoices.NUMBER.fullmatch(number)):
        found.append(("/invoice_id", 'must be an invoice number in a string, like "4412"'))
    if found:
        raise not_allowed(*found)
    return inputs


def token_hash(token: str) -> bytes:
    """What is kept of a plan token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _fingerprint(inputs: dict[str, Any], invoice: Row) -> str:
    """A hash over the inputs and the state that the plan was made from."""
    covered = {name: invoice[name] for name in ("currency", "amount_cents", "refunded_cents")}
    text = json.dumps(
        {"operation": "refund", "inputs": inputs, "state": covered},
        sort_keys=True,
        separators=(",", ":"),
    )
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def status_after(invoice: Row, refunded_cents: int) -> str:
    """The status that an invoice has once `refunded_cents` are paid back; as in schema.sql."""
    return "refunded" if refunded_cents == invoice["amount_cents"] else "partially_refunded"


def _actions(invoice: Row, refund: int) -> list[dict[str, Any]]:
    target, before = f"invoice/{invoice['number']}", invoice["refunded_cents"]
    after = before + refund
    changes = {"refunded_cents": (before, after)}
    if invoice["status"] != status_after(invoice, after):
        changes["status"] = (invoice["status"], status_after(invoice, after))
    return [
        {"op": "update", "target": target, "field": field, "from": old, "to": new}
        for field, (old, new) in changes.items()
    ]


def _facts(plan: Row) -> dict[str, Any]:
    return {
        "plan_id": plan["plan_id"],
        "expires_at": rfc3339(plan["expires_at"]),
        "input_fingerprint": plan["input_fingerprint"],
        "actions": plan["actions"],
        "covers": [f"invoice/{plan['invoice_number']}"],
        "created_at": rfc3339(plan["created_at"]),
    }


def read_back(connection: Connection, plan_id: str) -> dict[str, Any]:
    """The plan without its token, and what became of it.

    `not_applied` and `expired` are final words: they are stored before they are said, so every
    later commit is refused, even one that is on its way now. Source: T-8.
    """
    if not PLAN_ID.fullmatch(plan_id):
        _unknown()
    # Held to the end of this transaction: no commit of this plan begins while it is read.
    lock = connection.execute(
        "SELECT pg_try_advisory_xact_lock_shared(hashtextextended(%s, 0)) AS quiet", [plan_id]
    ).fetchone()
    plan = _find(connection, plan_id)
    if lock and lock["quiet"]:
        plan = _expired_if_late(connection, plan)
        status = plan["state"]
    else:
        status = "in_progress" if plan["state"] == "open" else plan["state"]
    answer = {**_facts(plan), "inputs": plan["inputs"], "status": status}
    if plan["state"] == "applied":
        answer["result"] = result(plan)
        answer["first_applied_at"] = rfc3339(plan["settled_at"])
    return answer


def _expired_if_late(connection: Connection, plan: Row) -> Row:
    if plan["state"] != "open" or not plan["late"]:
        return plan
    connection.execute(
        "UPDATE plans SET state = 'expired', settled_at = clock_timestamp()"
        " WHERE plan_id = %s AND state = 'open'",
        [plan["plan_id"]],
    )
    return _find(connection, plan["plan_id"])


def _find(connection: Connection, plan_id: str) -> Row:
    return (
        connection.execute(
            "SELECT plans.*, invoices.amount_cents, refunds.refund_id,"
            "  plans.expires_at <= clock_timestamp() AS late"
            " FROM plans JOIN invoices ON number = plans.invoice_number"
            " LEFT JOIN refunds USING (plan_id) WHERE plan_id = %s",
            [plan_id],
        ).fetchone()
        or _unknown()
    )


def _unknown() -> Row:
    raise Problem(404, "unknown-plan", "There is no such plan.")


def result(plan: Row) -> dict[str, Any]:
    """What a commit did: the `result` of the operation `refund`.

    `plan` carries the invoice's `amount_cents` and the `refund_id` beside its own columns.
    """
    refunded = plan["planned_refunded_cents"] + plan["refund_cents"]
    return {
        "invoice_id": str(plan["invoice_number"]),
        "refund_id": plan["refund_id"],
        "refunded_cents": refunded,
        "status": status_after(plan, refunded),
        "amount_cents": plan["refund_cents"],
    }

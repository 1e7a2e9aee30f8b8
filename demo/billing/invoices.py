"""Invoices, refunds made by other processes, and the ledger of what was applied."""

import re
from collections.abc import Mapping
from typing import Any

from countersign_target import Problem, not_allowed
from countersign_target.canonical import rfc3339
from countersign_target.strict_json import parse_object, unknown_members

from .database import Connection, Row

NUMBER = re.compile(r"[1-9][0-9]{0,11}", re.ASCII)
MAX_CENTS = 1_000_000_000
STATUSES = ("paid", "partially_refunded", "refunded")
TEXT_LIMIT = 200


def shown(row: Row) -> dict[str, Any]:
    """One invoice as the API shows it."""
    return {
        "invoice_id": str(row["number"]),
        "customer": row["customer"],
        "description": row["description"],
        "currency": row["currency"],
        "amount_cents": row["amount_cents"],
        "refunded_cents": row["refunded_cents"],
        "status": row["status"],
        "issued_at": rfc3339(row["issued_at"]),
    }


def find(connection: Connection, invoice_id: str, for_update: str = "") -> Row:
    """The invoice of that number, or a 404 problem."""
    row = None
    if NUMBER.fullmatch(invoice_id):
        query = f"SELECT * FROM invoices WHERE number = %s{for_update}"
        row = connection.execute(query.encode(), [int(invoice_id)]).fetchone()
    return row or _unknown()


def _unknown() -> Row:
    raise Problem(404, "unknown-invoice", "There is no invoice of that number.")


def listed(connection: Connection, query: Mapping[str, str]) -> dict[str, Any]:
    """Invoices, highest number first: `?status=&limit=1…200&cursor=`."""
    limit, cursor, status = query.get("limit", "50"), query.get("cursor"), query.get("status")
    if not NUMBER.fullmatch(limit) or int(limit) > 200:
        raise not_allowed(("/limit", "must be 1 to 200"))
    if cursor is not None and not NUMBER.fullmatch(cursor):
        raise not_allowed(("/cursor", "is not one of ours"))
    if status is not None and status not in STATUSES:
        raise not_allowed(("/status", f"must be one of {', '.join(STATUSES)}"))
    rows = connection.execute(
        "SELECT * FROM invoices WHERE (%(status)s::text IS NULL OR status = %(status)s)"
        " AND (%(before)s::bigint IS NULL OR number < %(before)s)"
        " ORDER BY number DESC LIMIT %(limit)s",
        {"status": status, "before": cursor and int(cursor), "limit": int(limit) + 1},
    ).fetchall()
    page = rows[: int(limit)]
    more = str(page[-1]["number"]) if len(rows) > len(page) else None
    return {"items": [shown(row) for row in page], "next": more}


def create(connection: Connection, raw: bytes) -> dict[str, Any]:
    """A new paid invoice: `{amount_cents, customer?, description?}`."""
    body = parse_object(raw)
    texts = {"customer": "Walk-in customer", "description": "Counter sale"} | {
        name: body[name] for name in ("customer", "description") if name in body
    }
    found = unknown_members(body, "amount_cents", *texts) + cents_errors(body)
    found += [
        (f"/{name}", f"must be 1 to {TEXT_LIMIT} printable characters")
        for name, text in texts.items()
        if not (isinstance(text, str) and 0 < len(text) <= TEXT_LIMIT and text.isprintable())
    ]
    if found:
        raise not_allowed(*found)
    row = connection.execute(
        "INSERT INTO invoices (customer, description, amount_cents) VALUES (%s, %s, %s)"
        " RETURNING *",
        [texts["customer"], texts["description"], body["amount_cents"]],
    ).fetchone()
    return shown(row or _unknown())


def cents_errors(body: dict[str, Any], member: str = "amount_cents") -> list[tuple[str, str]]:
    """An error unless `body[member]` is a whole number of cents, 1 to `MAX_CENTS`."""
    value = body.get(member)
    # A bool is an int to Python, and is no amount of money.
    if type(value) is int and 0 < value <= MAX_CENTS:
        return []
    return [(f"/{member}", f"must be a whole number from 1 to {MAX_CENTS}")]


def refund_externally(
    connection: Connection, invoice_id: str, refund_id: str, raw: bytes
) -> dict[str, Any]:
    """Another process pays back `{amount_cents}`: the world moves under every open plan."""
    body = parse_object(raw)
    if found := unknown_members(body, "amount_cents") + cents_errors(body):
        raise not_allowed(*found)
    number = find(connection, invoice_id)["number"]
    row = connection.execute(
        "UPDATE invoices SET refunded_cents = refunded_cents + %(cents)s"
        " WHERE number = %(number)s AND refunded_cents + %(cents)s <= amount_cents RETURNING *",
        {"cents": body["amount_cents"], "number": number},
    ).fetchone()
    if row is None:
        raise not_allowed(("/amount_cents", "is more than is left to refund"))
    connection.execute(
        "INSERT INTO refunds (refund_id, invoice_number, amount_cents, applied_at)"
        " VALUES (%s, %s, %s, clock_timestamp())",
        [refund_id, number, body["amount_cents"]],
    )
    return shown(row)


def ledger(connection: Connection) -> dict[str, Any]:
    """Every effect that a commit applied, in order: the judge of "applied at most once"."""
    rows = connection.execute(
        "SELECT * FROM refunds WHERE plan_id IS NOT NULL ORDER BY applied_at, refund_id"
    ).fetchall()
    effects = [
        {
            "refund_id": row["refund_id"],
            "idempotency_key": row["idempotency_key"],
            "plan_id": row["plan_id"],
            "invoice_id": str(row["invoice_number"]),
            "amount_cents": row["amount_cents"],
            "applied_at": rfc3339(row["applied_at"]),
        }
        for row in rows
    ]
    return {"items": effects, "next": None}

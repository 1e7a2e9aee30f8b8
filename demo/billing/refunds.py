"""The one operation, refund: two functions, plan and apply."""

import secrets
from typing import Any

from countersign_target import Plan, Planned, State, not_allowed, nothing_to_change, updates
from countersign_target.strict_json import unknown_members

from . import invoices

COVERED = ("currency", "amount_cents", "refunded_cents")


def plan(inputs: dict[str, Any], state: State) -> Planned:
    """Refund `amount_cents` on `invoice_id`; a wish for more than is left becomes what is left.

    404 for no such invoice, 422 `nothing-to-change` when everything is paid back already.
    """
    _check(inputs)
    invoice = invoices.find(state.connection, inputs["invoice_id"], state.for_update)
    name = f"invoice/{invoice['number']}"
    # The status follows from the amounts: to name it as changed too would be noise.
    state.cover(name, {column: invoice[column] for column in COVERED})
    left = invoice["amount_cents"] - invoice["refunded_cents"]
    if left == 0:
        raise nothing_to_change("The invoice is refunded in full already.")
    cents = min(inputs["amount_cents"], left)
    refunded = invoice["refunded_cents"] + cents
    status = "refunded" if cents == left else "partially_refunded"
    actions = updates(name, invoice, {"refunded_cents": refunded, "status": status})
    return Planned(actions, {"cents": cents, "refunded_cents": refunded, "status": status})


def apply(plan: Plan) -> dict[str, Any]:
    """Pay back, and write it into the ledger."""
    number, refund_id = int(plan.inputs["invoice_id"]), new_refund_id()
    values = {"cents": plan.details["cents"], "number": number, "refund": refund_id}
    plan.connection.execute(
        "WITH paid AS (UPDATE invoices SET refunded_cents = refunded_cents + %(cents)s"
        "  WHERE number = %(number)s)"
        " INSERT INTO refunds"
        "  (refund_id, invoice_number, amount_cents, plan_id, idempotency_key, applied_at)"
        " VALUES (%(refund)s, %(number)s, %(cents)s, %(plan)s, %(key)s, %(at)s)",
        values | {"plan": plan.plan_id, "key": plan.idempotency_key, "at": plan.now},
    )
    return {
        "invoice_id": str(number),
        "refund_id": refund_id,
        "refunded_cents": plan.details["refunded_cents"],
        "status": plan.details["status"],
        "amount_cents": plan.details["cents"],
    }


def new_refund_id() -> str:
    """A name for one payment."""
    return f"rfd_{secrets.token_hex(8)}"


def _check(inputs: dict[str, Any]) -> None:
    found = unknown_members(inputs, "amount_cents", "invoice_id") + invoices.cents_errors(inputs)
    number = inputs.get("invoice_id")
    if not (isinstance(number, str) and invoices.NUMBER.fullmatch(number)):
        found.append(("/invoice_id", 'must be an invoice number in a string, like "4412"'))
    if found:
        raise not_allowed(*found)

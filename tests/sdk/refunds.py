"""The wish of all programs here, and what the target's ledger says came of it."""

from __future__ import annotations

from typing import Any

from tests.demo.billing_process import Target


def wish(invoice: str, cents: int = 1_500) -> dict[str, Any]:
    return {"invoice_id": invoice, "amount_cents": cents}


def paid(billing: Target, invoice: str) -> list[int]:
    """What was really paid back, by the ledger."""
    items = billing.app.get("/_ledger").json()["items"]
    return [each["amount_cents"] for each in items if each["invoice_id"] == invoice]

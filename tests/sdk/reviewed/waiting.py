"""What a program hands over, and how it waits for what comes of it."""

from __future__ import annotations

from typing import Any


def wish(invoice: str, cents: int = 48_000) -> dict[str, Any]:
    return {"invoice_id": invoice, "amount_cents": cents}


def proposed(task: Any, inputs: dict[str, Any], **words: str) -> Any:
    """Handed over, and before people."""
    outcome = task.propose("billing", "refund", inputs, **words)
    return arrived(task, outcome)


def arrived(task: Any, outcome: Any) -> Any:
    for _ in range(60):
        if outcome.status not in ("verifying", "submitting", "planning"):
            return outcome
        outcome = task.wait(outcome.plan.plan_id, 2)
    raise AssertionError(outcome)


def shown(outcome: Any) -> dict[str, Any]:
    return {"plan_id": outcome.plan.plan_id}


def settled(task: Any, plan_id: str) -> Any:
    """What came of it, waited for as an agent does."""
    for _ in range(30):
        outcome = task.wait(plan_id, 10)
        if outcome.next_action not in ("wait", "replanning"):
            return outcome
    raise AssertionError(outcome)


def followed(task: Any, first: Any) -> Any:
    """The plan that took the place of another, before people."""
    for _ in range(60):
        outcome = task.wait(first.plan.plan_id, 3)
        if outcome.status == "pending" and outcome.plan.plan_id != first.plan.plan_id:
            return outcome
    raise AssertionError(outcome)

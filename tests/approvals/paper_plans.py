"""Plans at any point of their life, without a target that answers: rows as they would be."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any, Final

from approvals.oversight import ReviewOversight
from plans import custody
from plans.clock import clock
from plans.models import Agent, Intent, Operation, Plan
from plans.oversight import RISK_RANK
from plans.status import TERMINAL, Status
from plans.timestamps import decide_by, rfc3339

type MakePlan = Callable[..., Plan]

REFUND_ACTIONS: Final[list[dict[str, Any]]] = [
    {
        "op": "update",
        "target": "invoice/4412",
        "field": "refunded_cents",
        "from": 0,
        "to": 48000,
    },
    {
        "op": "update",
        "target": "invoice/4412",
        "field": "status",
        "from": "paid",
        "to": "refunded",
    },
]
_numbers = count(1)


def maker(operation: Operation, agent: Agent) -> MakePlan:
    """`make(status="pending", **columns)`: a verified refund of 480.00 USD, ten minutes long."""

    def make(*, window: timedelta = timedelta(minutes=10), **columns: Any) -> Plan:
        plan = _unsaved(operation, agent, window, columns)
        plan.save()
        return Plan.objects.with_names().get(pk=plan.pk)

    return make


def _unsaved(
    operation: Operation, agent: Agent, window: timedelta, columns: dict[str, Any]
) -> Plan:
    number, now = next(_numbers), clock()
    inputs = columns.pop("inputs", {"amount_cents": 48000, "invoice_id": "4412"})
    raw = inputs if isinstance(inputs, bytes) else json.dumps(inputs).encode()
    intent = columns.pop("intent", None) or Intent.objects.create(
        target=operation.target,
        operation=operation,
        agent=agent,
        task_id="task-1",
        inputs=raw,
        lives_until=now + timedelta(days=7),
    )
    expires_at = now + window
    fields: dict[str, Any] = {
        "target": operation.target,
        "operation": operation,
        "agent": agent,
        "intent": intent,
        "plan_id": f"plan_{number:05d}",
        "revision": 1,
        "task_id": "task-1",
        "status": Status.PENDING,
        "token": custody.encrypt(b"token-of-the-tests"),
        "token_sha256": custody.token_digest("token-of-the-tests"),
        "request_sha256": "",
        "input_fingerprint": f"sha256:{number:064x}",
        "inputs": raw,
        "document": b"{}",
        "actions": REFUND_ACTIONS,
        "covers": ["invoice/4412"],
        "expires_at_text": rfc3339(expires_at),
        "expires_at": expires_at,
        "decide_by": decide_by(expires_at, now, 45),
        "received_at": now,
        "plan_created_at": now,
        "verification": Plan.Verification.VERIFIED,
        "verified_at": now,
        "connection_version": operation.target.connection_version,
        "idempotency_key": f"idem_{number:08d}",
    }
    plan = Plan(**(fields | columns))
    if plan.status in TERMINAL:
        plan.token = plan.commit_body = None
    _assess(plan)
    return plan


def _assess(plan: Plan) -> None:
    """What verification stores when a plan becomes pending."""
    found = ReviewOversight().assess(plan)
    plan.title, plan.asked, plan.risk = found.title, found.asked, found.risk
    plan.risk_rank = RISK_RANK[found.risk]
    plan.policy_version, plan.demands = found.policy_version, found.demands
    plan.approvals_required, plan.digest = found.approvals_required, found.digest
    plan.likeness = found.likeness

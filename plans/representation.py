"""A plan and an intent as their agent sees them (A-6, A-12), and the tag that says they changed.

The members are documented in `plans.envelopes`. No token, ever (A-2).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, cast
from urllib.parse import quote

from django.conf import settings
from django.db.models import OneToOneRel

from plans.intents import intent_status
from plans.models import Intent, Plan, Replan
from plans.oversight import oversight
from plans.status import OPEN, REPLANNED, Status
from plans.timestamps import rfc3339

type Members = dict[str, Any]

# They change by themselves, and a change of theirs wakes nobody.
VOLATILE: Final = frozenset({"server_time", "decide_in_ms"})
NEXT_ACTION: Final[Mapping[str, str]] = {
    Status.VERIFYING: "wait",
    Status.PENDING: "wait",
    Status.APPROVED: "wait",
    Status.COMMITTING: "wait",
    Status.UNKNOWN: "wait",
    Status.UNRESOLVED: "investigate",
    Status.COMMITTED: "done",
    Status.REJECTED: "stop",
    Status.ABANDONED: "stop",
    Status.SUPERSEDED: "stop",
    Status.MISMATCHED: "fix_request",
    Status.FAILED: "stop",
}
_INTENT_NEXT_ACTION: Final[Mapping[str, str]] = {
    "committed": "done",
    "settled": "done",
    "rejected": "stop",
    "failed": "stop",
    "abandoned": "stop",
    "parked": "wait",
    "unresolved": "investigate",
}


def represent(plans: Sequence[Plan], now: datetime) -> list[Members]:
    """The representations of plans read by `plans.listing`, with one further query in all."""
    decisions = oversight().last_decisions(plans)
    return [_plan(plan, decisions.get(plan.pk), now) for plan in plans]


def represent_new(plan: Plan) -> Members:
    """A first plan as it was stored a moment ago, without asking the database for it again.

    Nobody has decided on it, nothing follows it, and it was received just now (C-1).
    """
    for follower in ("replaced_by", "replan"):
        cast("OneToOneRel", Plan._meta.get_field(follower)).set_cached_value(plan, None)
    return _plan(plan, None, plan.received_at)


def _plan(plan: Plan, decision: Members | None, now: datetime) -> Members:
    replan = replan_of(plan)
    return {
        **_names(plan),
        "expires_at": plan.expires_at_text,
        "decide_by": rfc3339(plan.decide_by),
        "decide_in_ms": _decide_in_ms(plan, now),
        "server_time": rfc3339(now),
        "input_fingerprint": plan.input_fingerprint,
        "content_digest": plan.digest or None,
        "actions": plan.actions,
        "verified": plan.verified,
        "approvals": {"given": plan.approvals_given, "required": plan.approvals_required},
        "decision": _decision(decision),
        "commit": _commit(plan),
        "replaces": plan.replaces.plan_id if plan.replaces else None,
        "replaced_by": successor_id(plan),
        "replan": replan and represent_replan(replan),
        "next_action": next_action(plan, replan),
        "links": _links(plan),
    }


def _names(plan: Plan) -> Members:
    return {
        "plan_id": plan.plan_id,
        "target": plan.target.name,
        "operation": plan.operation.name,
        "status": plan.status,
        "revision": plan.revision,
        "intent_id": str(plan.intent_id),
        "task_id": plan.task_id,
    }


def _decide_in_ms(plan: Plan, now: datetime) -> int | None:
    """Milliseconds left for a decision, for a monotonic countdown; None when none is open (C-1)."""
    if plan.status not in OPEN:
        return None
    return max(0, (plan.decide_by - now) // timedelta(milliseconds=1))


def _decision(decision: Members | None) -> Members | None:
    return decision and {**decision, "at": rfc3339(decision["at"])}


def _commit(plan: Plan) -> Members:
    return {
        "idempotency_key": plan.idempotency_key,
        "attempts": plan.attempts_made,
        "result": plan.result,
        "problem": _picked(plan.problem, "status", "code", "detail"),
        "applied_out_of_band": plan.applied_out_of_band,
        "conflict": _picked(plan.conflict, "changed", "plan_created_at"),
    }


def _picked(stored: Members | None, *names: str) -> Members | None:
    return None if stored is None else {name: stored.get(name) for name in names}


def represent_replan(replan: Replan) -> Members:
    """A re-plan, its next try only while it waits."""
    waits = replan.status in Replan.WAITING
    return {
        "id": replan.pk,
        "cause": replan.cause,
        "mode": replan.mode,
        "status": replan.status,
        "reason": replan.reason,
        "tries": replan.tries,
        "next_try_at": rfc3339(replan.next_try_at) if waits else None,
        "last_error": replan.last_error,
    }


def plan_path(target: str, plan_id: str) -> str:
    """The path of a plan in the REST interface."""
    return f"/api/v1/plans/{quote(target, safe='')}/{plan_id}"


def _links(plan: Plan) -> Members:
    name, base = quote(plan.target.name, safe=""), settings.BASE_URL
    return {
        "self": base + plan_path(plan.target.name, plan.plan_id),
        "review": f"{base}/plans/{name}/{plan.plan_id}/",
        "intent": f"{base}/api/v1/intents/{plan.intent_id}",
    }


def replan_of(plan: Plan) -> Replan | None:
    """The re-plan of a dead plan."""
    return getattr(plan, "replan", None)


def successor_id(plan: Plan) -> str | None:
    """The plan ID of the plan that replaced this one."""
    successor: Plan | None = getattr(plan, "replaced_by", None)
    return successor.plan_id if successor else None


def next_action(plan: Plan, replan: Replan | None) -> str:
    """The one word an agent branches on (A-6)."""
    if plan.status not in REPLANNED:
        return NEXT_ACTION[plan.status]
    if plan.intent.status == Intent.Status.SETTLED:
        return "done"
    if plan.intent.status in (Intent.Status.ABANDONED, Intent.Status.FAILED):
        return "stop"
    if replan is not None and replan.mode == "server" and replan.status != Replan.Status.PARKED:
        return "replanning"
    # The agent's own successor is here already: there is nothing more to do for this plan.
    return "stop" if successor_id(plan) else "replan"


def represent_intent(
    intent: Intent, plan: Plan | None, replan: Replan | None, now: datetime
) -> Members:
    """The truthful description of what was asked and what remains of it (A-12)."""
    current = represent([plan], now)[0] if plan else None
    status = intent_status(intent, plan)
    inner = current["next_action"] if current and status == "open" else "wait"
    return {
        "intent_id": str(intent.pk),
        "target": intent.target.name,
        "operation": intent.operation.name,
        "task_id": intent.task_id,
        "status": status,
        "closed_reason": intent.closed_reason or None,
        "asked": _asked(intent),
        "planned": plan.actions if plan else None,
        "changed": _moved(plan),
        "decision": current["decision"] if current else None,
        "plan": current,
        "replan": replan and represent_replan(replan),
        "created_at": rfc3339(intent.created_at),
        "lives_until": rfc3339(intent.lives_until),
        "server_time": rfc3339(now),
        "next_action": _INTENT_NEXT_ACTION.get(status, inner),
        "links": {
            "self": f"{settings.BASE_URL}/api/v1/intents/{intent.pk}",
            "plan": current["links"]["self"] if current else None,
        },
    }


def _asked(intent: Intent) -> Members:
    inputs = bytes(intent.inputs).decode()
    return {"inputs": inputs, "summary": intent.summary, "reason": intent.reason}


def _moved(plan: Plan | None) -> Members | None:
    """Why the current plan is not the one before, and what each would do."""
    previous = plan.replaces if plan else None
    if plan is None or previous is None:
        return None
    return {
        "replaces": previous.plan_id,
        "cause": previous.status,
        "conflict": (previous.conflict or {}).get("changed"),
        "before": previous.actions,
        "after": plan.actions,
    }


def entity_tag(members: Members) -> str:
    """A strong ETag over everything but the clock (A-5)."""
    text = json.dumps(_steady(members), sort_keys=True, separators=(",", ":")).encode()
    return f'"{hashlib.sha256(text).hexdigest()[:32]}"'


def _steady(members: Members) -> Members:
    """Only our own members are left out, never the target's words of the same name."""
    return {
        name: _steady(value) if name == "plan" and value else value
        for name, value in members.items()
        if name not in VOLATILE
    }

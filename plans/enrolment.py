"""A plan joins its intent: the row, its evidence and its event, for agents and re-plans alike."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import IntegrityError
from django.db.models import BigIntegerField, DateTimeField, TextField

from audit.actions import Action
from audit.actors import Actor
from audit.recording import record
from audit.statements import Slot, Statement
from audit.writing import insert
from plans import custody, errors
from plans.canonical import jcs, sha256_hex
from plans.inspection import PlanFacts, check_window
from plans.lifecycle import Verb, transition
from plans.models import Agent, Evidence, Intent, Operation, Plan, Replan, Write
from plans.status import Status
from plans.timestamps import rfc3339

INTENT_LIFESPAN: Final = timedelta(days=7)
# Replaced by a plan that arrives, these end there and then.
REPLACED_ALIVE: Final = (Status.PENDING, Status.VERIFYING)


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One read the agent found, in its own words (A-9)."""

    label: str
    text: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """Everything of a new plan but its place among the revisions."""

    agent: Agent
    operation: Operation
    task_id: str
    inputs: bytes = field(repr=False)
    facts: PlanFacts = field(repr=False)
    content_sha256: str
    # The dry-run response as the agent wrote it, without its token.
    document: str | None = field(default=None, repr=False)
    summary: str = ""
    reason: str = ""
    evidence: Sequence[EvidenceItem] = ()
    idempotency_key: str | None = None


def new_intent(draft: Draft, now: datetime) -> Intent:
    """The intent of a first plan, stored with it; its lifespan starts now (R-3)."""
    return Intent(
        target=draft.operation.target,
        operation=draft.operation,
        agent=draft.agent,
        task_id=draft.task_id,
        inputs=draft.inputs,
        summary=draft.summary,
        reason=draft.reason,
        lives_until=now + INTENT_LIFESPAN,
    )


def enrol(
    intent: Intent,
    draft: Draft,
    predecessor: Plan | None,
    *,
    replan: Replan | None = None,
    actor: Actor,
    now: datetime,
) -> Plan:
    """Store the intent with the plan as its next revision. The caller holds the intent's lock.

    `replan` is the piece of work that this plan completes.
    A pending predecessor becomes superseded at once (A-22); the plan of an abandoned intent is
    stored abandoned, its token destroyed (A-8). Raises a Problem when the window (A-19) or a
    uniqueness rule (A-3, A-4) refuses it.
    """
    decide_by = check_window(draft.facts, draft.operation.target, now)
    intent.latest_revision += 1
    intent.unattended_replans = _unattended(intent, predecessor)
    if intent._state.adding:
        insert(intent)
    else:
        intent.save()
    plan = _insert(intent, draft, predecessor, now=now, decide_by=decide_by)
    if draft.evidence:
        rows = [Evidence(plan=plan, label=e.label, text=e.text, url=e.url) for e in draft.evidence]
        Evidence.objects.bulk_create(rows)
    record(Action.PLAN_SUBMITTED, actor, plan.subject(), _as_submitted(plan, predecessor))
    if predecessor is not None and predecessor.status in REPLACED_ALIVE:
        details = {"replaced_by": plan.plan_id}
        transition(predecessor, Verb.SUPERSEDE, actor=actor, details=details)
    if replan is not None:
        finish_replan(replan, plan, actor=actor, now=now)
    if intent.status == Intent.Status.ABANDONED:
        details = {"reason": "the intent was abandoned before"}
        return transition(plan, Verb.ABANDON, actor=actor, details=details)
    return go_stale_by_earlier_write(plan, actor)


def _unattended(intent: Intent, predecessor: Plan | None) -> int:
    """How many of the intent's plans in a row nobody decided on in time (R-3)."""
    if predecessor is None or predecessor.status in REPLACED_ALIVE:
        return intent.unattended_replans
    lapsed = predecessor.status in (Status.EXPIRED, Status.STALE) and not predecessor.attended
    return intent.unattended_replans + 1 if lapsed else 0


def _insert(
    intent: Intent, draft: Draft, predecessor: Plan | None, *, now: datetime, decide_by: datetime
) -> Plan:
    target = draft.operation.target
    try:
        plan = Plan(
            target=target,
            intent=intent,
            revision=intent.latest_revision,
            replaces=predecessor,
            decide_by=decide_by,
            received_at=now,
            plan_created_at=draft.facts.created_at or now,
            verify_at=now,
            connection_version=target.connection_version,
            idempotency_key=draft.idempotency_key or f"idem_{uuid.uuid4().hex}",
            **_as_sent(draft),
            **_in_custody(draft.facts),
        )
        return insert(plan)
    except IntegrityError as error:
        raise _as_problem(error) from None


def _as_sent(draft: Draft) -> dict[str, Any]:
    """The columns that hold what was submitted, until the target's own words replace them."""
    facts = draft.facts
    return {
        "operation": draft.operation,
        "agent": draft.agent,
        "plan_id": facts.plan_id,
        "task_id": draft.task_id,
        "request_sha256": draft.content_sha256,
        "input_fingerprint": facts.input_fingerprint,
        "inputs": draft.inputs,
        "document": draft.document.encode() if draft.document else json_text(facts.document),
        "actions": facts.actions,
        "covers": facts.covers,
        "summary": draft.summary,
        "reason": draft.reason,
        "expires_at_text": facts.expires_at_text,
        "expires_at": facts.expires_at,
        "title": f"{draft.operation.name} on {_objects(facts.actions)}",
    }


def _in_custody(facts: PlanFacts) -> dict[str, Any]:
    """The columns made of the token. No frame of a caller holds its text: reports show frames."""
    return {
        "token": custody.encrypt(facts.token.reveal().encode()),
        "token_sha256": custody.token_digest(facts.token.reveal()),
        "commit_body": custody.encrypt(commit_body(facts.token.reveal(), facts.input_fingerprint)),
    }


def commit_body(token: str, input_fingerprint: str) -> bytes:
    """T-1: serialised once, stored, byte-identical in every attempt."""
    return json_text({"plan_token": token, "input_fingerprint": input_fingerprint})


def json_text(value: Mapping[str, Any]) -> bytes:
    """Compact JSON in the order received."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def content_sha256(content: Mapping[str, Any]) -> str:
    """The hash by which a repeated submission is recognised (A-3); all that stays of it."""
    return sha256_hex(jcs(dict(content)))


def _objects(actions: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(str(action["target"]) for action in actions))


def _as_submitted(plan: Plan, predecessor: Plan | None) -> dict[str, Any]:
    return {
        "revision": plan.revision,
        "expires_at": rfc3339(plan.expires_at),
        "input_fingerprint": plan.input_fingerprint,
        "idempotency_key": plan.idempotency_key,
        "replaces": predecessor.plan_id if predecessor else None,
    }


def _as_problem(error: IntegrityError) -> errors.Problem:
    """Which rule of the database said no, as the answer the agent can act on."""
    diag = getattr(error.__cause__, "diag", None)
    name = str(getattr(diag, "constraint_name", None))
    match name:
        case "one_plan_per_id":
            return errors.PlanAlreadySubmitted()
        case "one_plan_per_key":
            return errors.IdempotencyKeyTaken(pointer="/idempotency_key")
    if name == "one_plan_per_revision" or name.startswith("plans_plan_replaces_id"):
        return errors.Superseded("Another plan has replaced this predecessor already.")
    raise error


def finish_replan(replan: Replan, plan: Plan, *, actor: Actor, now: datetime) -> None:
    """The re-plan has its new plan."""
    Replan.objects.filter(pk=replan.pk).update(
        status=Replan.Status.DONE, new_plan=plan, finished_at=now, lease=None, last_error=""
    )
    details = {"new_plan": plan.plan_id, "cause": replan.cause, "tries": replan.tries}
    record(Action.REPLAN_COMPLETED, actor, plan.subject(), details)


WRITTEN: Final = "an object that this plan covers was written"


_WRITES: Final = Statement(
    lambda: Write.objects.filter(
        agent=Slot("agent", BigIntegerField()),
        task_id=Slot("task", TextField()),
        at__gt=Slot("since", DateTimeField()),
    )
)


def go_stale_by_earlier_write(plan: Plan, actor: Actor) -> Plan:
    """A plan made before a stored write that hits it is stale on arrival (A-10)."""
    later = {"agent": plan.agent_id, "task": plan.task_id, "since": plan.plan_created_at}
    for write in _WRITES.all(**later):
        if write.hits(plan.covers):
            details = {"reason": WRITTEN, "tool": write.tool}
            return transition(plan, Verb.MARK_STALE, actor=actor, details=details)
    return plan

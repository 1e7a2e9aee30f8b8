"""The agent's first verb: submit a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from audit import actors
from audit.actors import Actor
from plans import errors
from plans.abandonment import abandon
from plans.admission import admit, lock_agent
from plans.clock import clock
from plans.custody import find_token
from plans.enrolment import Draft, EvidenceItem, content_sha256, enrol, new_intent
from plans.inspection import IDEMPOTENCY_KEY, check_inputs, inspect_plan
from plans.models import Agent, Intent, Operation, Plan, Replan
from plans.status import Status

__all__ = ["EvidenceItem", "Submission", "abandon", "find_operation", "submit"]


@dataclass(frozen=True, slots=True)
class Submission:
    """One `POST /plans`, parsed strictly. `inputs` is the exact text; `plan` holds the token."""

    target: str
    operation: str
    task_id: str
    inputs: bytes = field(repr=False)
    inputs_value: Mapping[str, Any] = field(repr=False)
    plan: Mapping[str, Any] = field(repr=False)
    summary: str = ""
    reason: str = ""
    evidence: Sequence[EvidenceItem] = ()
    replaces: str | None = None
    replan_id: int | None = None
    idempotency_key: str | None = None

    def content(self) -> dict[str, Any]:
        """What makes two submissions the same one (A-3)."""
        return {
            "target": self.target,
            "operation": self.operation,
            "task_id": self.task_id,
            "inputs": self.inputs.decode(),
            "plan": dict(self.plan),
            "summary": self.summary,
            "reason": self.reason,
            "evidence": [[e.label, e.text, e.url] for e in self.evidence],
            "replaces": self.replaces,
            "replan_id": self.replan_id,
            "idempotency_key": self.idempotency_key,
        }


def submit(agent: Agent, submission: Submission) -> tuple[Plan, bool]:
    """Hold the plan for review; True when it is new, False when it was here already (A-3).

    Everything is checked before anything is stored. Raises Problems (A-17).
    """
    operation = find_operation(submission.target, submission.operation)
    draft = _inspect(agent, operation, submission)
    if existing := _existing(agent, draft):
        return existing, False
    try:
        with transaction.atomic():
            return _enrol_submission(submission, draft), True
    except errors.PlanAlreadySubmitted:
        # Two identical submissions at once: the loser finds the winner's row.
        if existing := _existing(agent, draft):
            return existing, False
        raise


def find_operation(target: str, name: str) -> Operation:
    """The operation with its target; UnknownTarget or UnknownOperation (422)."""
    found = list(Operation.objects.select_related("target").filter(target__name=target))
    if not found:
        raise errors.UnknownTarget(pointer="/target")
    for operation in found:
        if operation.name == name:
            return operation
    raise errors.UnknownOperation(pointer="/operation")


def _inspect(agent: Agent, operation: Operation, submission: Submission) -> Draft:
    content = submission.content()
    facts = inspect_plan(submission.plan, operation)
    _refuse_token_elsewhere(content, facts.token.reveal())
    key = submission.idempotency_key
    if key is not None and not IDEMPOTENCY_KEY.fullmatch(key):
        raise errors.InvalidIdempotencyKey(pointer="/idempotency_key")
    check_inputs(submission.inputs_value, operation)
    return Draft(
        agent=agent,
        operation=operation,
        task_id=submission.task_id,
        inputs=submission.inputs,
        facts=facts,
        content_sha256=content_sha256(content),
        summary=submission.summary,
        reason=submission.reason,
        evidence=submission.evidence,
        idempotency_key=key,
    )


def _refuse_token_elsewhere(content: dict[str, Any], token: str) -> None:
    """A-18: the token has one place; anywhere else it would be shown, logged or exported."""
    pointer = find_token(content, token, allowed="/plan/plan_token")
    if pointer is not None:
        raise errors.TokenElsewhere(pointer=pointer)


def _existing(agent: Agent, draft: Draft) -> Plan | None:
    plan = (
        Plan.objects.with_names()
        .filter(target=draft.operation.target, plan_id=draft.facts.plan_id)
        .first()
    )
    if plan is None:
        return None
    if plan.agent_id != agent.pk or plan.request_sha256 != draft.content_sha256:
        raise errors.PlanAlreadySubmitted(plan_id=draft.facts.plan_id)
    return plan


def _enrol_submission(submission: Submission, draft: Draft) -> Plan:
    actor = actors.agent(draft.agent.pk, draft.agent.name)
    if submission.replan_id is not None:
        replan = _open_replan(submission.replan_id, draft.agent)
        lock_agent(draft.agent, draft.task_id)
        intent = Intent.objects.locked(replan.intent_id)
        # The lock may have waited for whoever finished or cancelled this re-plan.
        replan = _open_replan(submission.replan_id, draft.agent)
        predecessor = Plan.objects.locked(replan.plan_id) if replan.plan_id else None
        # Re-plans do not count against the cap.
        return _join(intent, draft, predecessor, replan, actor=actor, now=clock())
    if submission.replaces is not None:
        found = _named_predecessor(submission.replaces, draft)
        now = admit(draft.agent, draft.task_id)
        intent = Intent.objects.locked(found.intent_id)
        predecessor = _replaceable(Plan.objects.locked(found.pk))
        waiting = Replan.objects.waiting().filter(intent=intent).first()
        # An explicit `replaces` opens an abandoned intent again; a re-plan's answer never does.
        intent.status = Intent.Status.OPEN
        return _join(intent, draft, predecessor, waiting, actor=actor, now=now)
    now = admit(draft.agent, draft.task_id)
    return enrol(new_intent(draft, now), draft, None, actor=actor, now=now)


def _join(
    intent: Intent,
    draft: Draft,
    predecessor: Plan | None,
    replan: Replan | None,
    *,
    actor: Actor,
    now: datetime,
) -> Plan:
    """The agent's own next revision: what it sends now is what the intent asks for from here."""
    intent.inputs, intent.summary, intent.reason = draft.inputs, draft.summary, draft.reason
    intent.unattended_replans = 0
    return enrol(intent, draft, predecessor, replan=replan, actor=actor, now=now)


def _open_replan(pk: int, agent: Agent) -> Replan:
    replan = Replan.objects.waiting().filter(pk=pk, intent__agent=agent, mode="agent").first()
    if replan is None:
        raise errors.UnknownReplan(pointer="/replan_id")
    return replan


def _named_predecessor(plan_id: str, draft: Draft) -> Plan:
    target = draft.operation.target
    found = Plan.objects.filter(target=target, agent=draft.agent, plan_id=plan_id).first()
    if found is None:
        raise errors.UnknownPredecessor(pointer="/replaces")
    return found


REPLACEABLE = frozenset(
    {
        Status.EXPIRED,
        Status.CONFLICTED,
        Status.STALE,
        Status.CHANGES_REQUESTED,
        Status.REJECTED,
        Status.ABANDONED,
        Status.FAILED,
        Status.PENDING,
        Status.VERIFYING,
    }
)


def _replaceable(plan: Plan) -> Plan:
    successor = Plan.objects.filter(replaces=plan).first()
    if successor is not None:
        raise errors.Superseded(
            plan_id=plan.plan_id, plan_status=plan.status, replaced_by=successor.plan_id
        )
    if plan.status == Status.COMMITTED:
        raise errors.PredecessorCommitted(plan_id=plan.plan_id, plan_status=plan.status)
    if plan.status not in REPLACEABLE:
        raise errors.PredecessorUnresolved(plan_id=plan.plan_id, plan_status=plan.status)
    return plan

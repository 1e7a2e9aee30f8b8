"""The agent's first verb: submit a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import TextField

from audit import actors
from audit.actors import Actor
from audit.statements import Slot, Statement
from plans import errors
from plans.abandonment import abandon
from plans.admission import admit
from plans.custody import Secret, find_token
from plans.enrolment import (
    INTENT_LIFESPAN,
    Draft,
    EvidenceItem,
    content_sha256,
    enrol,
    new_intent,
)
from plans.inspection import IDEMPOTENCY_KEY, check_inputs, inspect_plan
from plans.models import Agent, Intent, Operation, Plan, Replan
from plans.oversight import Wish, oversight
from plans.retrying import retried
from plans.status import Status
from plans.verbatim import without

__all__ = ["EvidenceItem", "Submission", "abandon", "find_operation", "refuse_denied", "submit"]


@dataclass(frozen=True, slots=True)
class Submission:
    """One `POST /plans`, parsed strictly. `inputs` is the exact text; `plan` holds the token.

    `plan_text` is that member as it was written; without it, it is kept as the values say.
    """

    target: str
    operation: str
    task_id: str
    inputs: bytes = field(repr=False)
    inputs_value: Mapping[str, Any] = field(repr=False)
    plan: Mapping[str, Any] = field(repr=False)
    plan_text: str = field(default="", repr=False)
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


@retried
def submit(agent: Agent, submission: Submission) -> tuple[Plan, bool]:
    """Hold the plan for review; True when it is new, False when it was here already (A-3).

    Everything is checked before anything is stored. Raises Problems (A-17).
    """
    operation = find_operation(submission.target, submission.operation)
    draft = _inspect(agent, operation, submission)
    try:
        with transaction.atomic():
            return _enrol_submission(submission, draft), True
    except errors.Problem:
        # A repeat meets its own first time as any refusal: as its ID or key, its predecessor's
        # successor, a full queue, a window that has become too short.
        if existing := _existing(agent, draft):
            return existing, False
        raise


_OPERATIONS: Final = Statement(
    lambda: Operation.objects.select_related("target").filter(
        target__name=Slot("target", TextField())
    )
)


def find_operation(target: str, name: str) -> Operation:
    """The operation with its target; UnknownTarget or UnknownOperation (422)."""
    found = _OPERATIONS.all(target=target)
    if not found:
        raise errors.UnknownTarget(pointer="/target")
    for operation in found:
        if operation.name == name:
            return operation
    raise errors.UnknownOperation(pointer="/operation")


def refuse_denied(wish: Wish) -> None:
    """PolicyDenied (403) where a policy denies already what the agent itself says (B-7)."""
    if objection := oversight().objection_to_wish(wish):
        raise errors.PolicyDenied(objection)


def _inspect(agent: Agent, operation: Operation, submission: Submission) -> Draft:
    facts = inspect_plan(submission.plan, operation)
    _refuse_token_elsewhere(submission, facts.token)
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
        content_sha256=content_sha256(submission.content()),
        document=without(submission.plan_text, "plan_token") if submission.plan_text else None,
        summary=submission.summary,
        reason=submission.reason,
        evidence=submission.evidence,
        idempotency_key=key,
    )


def _refuse_token_elsewhere(submission: Submission, token: Secret) -> None:
    """A-18: the token has one place; anywhere else it would be shown, logged or exported."""
    pointer = find_token(submission.content(), token.reveal(), allowed="/plan/plan_token")
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
    if plan.agent_id != agent.pk:
        raise errors.PlanAlreadySubmitted(plan_id=draft.facts.plan_id)
    if plan.request_sha256 != draft.content_sha256:
        raise errors.PlanAlreadySubmitted(plan_id=plan.plan_id, plan_status=plan.status)
    return plan


def _enrol_submission(submission: Submission, draft: Draft) -> Plan:
    inputs, actions = submission.inputs_value, draft.facts.actions
    refuse_denied(Wish(draft.agent, draft.operation, inputs, actions))
    if submission.replan_id is not None:
        return _answer_replan(submission.replan_id, submission.replaces, draft)
    if submission.replaces is not None:
        return _replace(submission.replaces, draft)
    now = admit(draft.agent, draft.task_id)
    return enrol(new_intent(draft, now), draft, None, actor=_actor(draft), now=now)


def _actor(draft: Draft) -> Actor:
    return actors.agent(draft.agent.pk, draft.agent.name)


def _answer_replan(pk: int, replaces: str | None, draft: Draft) -> Plan:
    """The agent's plan for a re-plan of its own (A-13)."""
    replan = Replan.objects.filter(pk=pk, intent__agent=draft.agent, mode=AGENT).first()
    if replan is None:
        raise errors.UnknownReplan(pointer="/replan_id")
    now = admit(draft.agent, draft.task_id, capped=False)
    intent = Intent.objects.locked(replan.intent_id)
    predecessor = Plan.objects.latest_locked(intent)
    # Read after the lock: it may have waited for whoever finished or cancelled this re-plan.
    replan.refresh_from_db()
    over = intent.status == Intent.Status.ABANDONED
    if replan.status not in Replan.WAITING and not (over and replan.status == CANCELLED):
        raise errors.ReplanNotHeld(pointer="/replan_id")
    if replaces not in (None, predecessor and predecessor.plan_id):
        raise errors.UnknownPredecessor(pointer="/replaces")
    if predecessor is not None and predecessor.status != Status.MISMATCHED:
        _check_replaceable(predecessor)
    return _join(intent, draft, predecessor, None if over else replan, now)


def _replace(plan_id: str, draft: Draft) -> Plan:
    """The agent's plan in place of one of its own (A-22)."""
    target = draft.operation.target
    found = Plan.objects.filter(target=target, agent=draft.agent, plan_id=plan_id).first()
    if found is None:
        raise errors.UnknownPredecessor(pointer="/replaces")
    now = admit(draft.agent, draft.task_id, capped=not _is_replan(found))
    intent = Intent.objects.locked(found.intent_id)
    predecessor = Plan.objects.locked(found.pk)
    _check_replaceable(predecessor)
    if predecessor.status == Status.ABANDONED and intent.status == Intent.Status.ABANDONED:
        # To replace what was abandoned is to want it again; any other late plan is not.
        intent.status, intent.closed_reason = Intent.Status.OPEN, ""
        intent.lives_until = now + INTENT_LIFESPAN
    waiting = Replan.objects.waiting().filter(intent=intent).first()
    return _join(intent, draft, predecessor, waiting, now)


def _is_replan(predecessor: Plan) -> bool:
    """Whether a plan in its place adds nothing to what waits: it does not count (A-20)."""
    if predecessor.status in (Status.PENDING, Status.VERIFYING):
        return True
    return Replan.objects.waiting().filter(intent=predecessor.intent_id).exists()


def _join(
    intent: Intent, draft: Draft, predecessor: Plan | None, replan: Replan | None, now: datetime
) -> Plan:
    """The agent's own next revision: what it sends now is what the intent asks for from here."""
    if intent.operation_id != draft.operation.pk:
        raise errors.InvalidField("An intent keeps its operation.", pointer="/operation")
    intent.inputs, intent.summary, intent.reason = draft.inputs, draft.summary, draft.reason
    intent.task_id = draft.task_id
    if intent.status != Intent.Status.ABANDONED:
        intent.status = Intent.Status.OPEN
    return enrol(intent, draft, predecessor, replan=replan, actor=_actor(draft), now=now)


AGENT: Final = Operation.ReplanMode.AGENT
CANCELLED: Final = Replan.Status.CANCELLED
REPLACEABLE: Final = frozenset(
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


def _check_replaceable(plan: Plan) -> None:
    about: dict[str, Any] = {"plan_id": plan.plan_id, "plan_status": plan.status}
    successor = Plan.objects.filter(replaces=plan).first()
    if successor is not None:
        raise errors.Superseded(**about, replaced_by=successor.plan_id)
    if plan.status == Status.COMMITTED:
        raise errors.PredecessorCommitted(**about)
    if plan.status == Status.MISMATCHED:
        reason = "The target does not know the plan to be replaced as it was submitted."
        raise errors.IntentClosed(reason, **about)
    if plan.status not in REPLACEABLE:
        raise errors.PredecessorUnresolved(**about)

"""Dead plans come back: queue, lease, dry run, park (R-1 … R-3)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import Q

from audit import actors
from audit.actions import Action
from audit.actors import Actor
from audit.recording import record
from plans import gateway
from plans.clock import clock
from plans.enrolment import Draft, content_sha256, enrol, finish_replan
from plans.errors import NoteRequired, NotReplannable, PlanAlreadySubmitted, Problem
from plans.exchanges import Answer, Call, Exchange
from plans.inspection import PlanFacts, inspect_plan
from plans.lifecycle import Verb, allowed, transition
from plans.models import Intent, Operation, Plan, Replan
from plans.reading import endpoint
from plans.status import Status
from plans.strict_json import parse_object
from plans.submission import cancel_replans

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=90)
BACK_OFF: Final = (0, 30, 120, 600, 1800)
# A refusal with one of these is about us or the moment, not about the wish.
TRY_AGAIN: Final = frozenset({401, 403, 408, 425, 429})
UNATTENDED: Final = frozenset({Replan.Cause.EXPIRED, Replan.Cause.STALE})


@dataclass(frozen=True, slots=True)
class Refusal:
    """The target's 4xx to a dry run: its status, code and words."""

    status: int
    code: str
    words: str


def run(pk: int) -> None:
    """Make the fresh plan of one queued server re-plan; any number of calls come to one plan."""
    replan = _claim(pk)
    if replan is None:
        return
    intent = replan.intent
    call = Call(
        "POST",
        intent.operation.dry_run_path,
        body=bytes(intent.inputs),
        headers={"Content-Type": "application/json"},
    )
    exchange = gateway.exchange(endpoint(intent.target), call)
    match _judge(exchange, intent.operation):
        case PlanFacts() as facts:
            _complete(replan, facts)
        case Refusal() as refusal:
            _refused(replan, refusal)
        case str() as fault:
            _failed_try(replan, fault)


def _claim(pk: int) -> Replan | None:
    """The lease by compare-and-set; a lapsed one is taken over (Q-1)."""
    with transaction.atomic():
        now = clock()
        mine = Replan.objects.filter(
            Q(status=Replan.Status.QUEUED, next_try_at__lte=now)
            | Q(status=Replan.Status.LEASED, lease_until__lte=now),
            pk=pk,
            mode=Operation.ReplanMode.SERVER,
        )
        lease = uuid.uuid4()
        leased = {"status": Replan.Status.LEASED, "lease": lease, "lease_until": now + LEASE}
        if not mine.update(**leased):
            return None
    related = ("intent__target", "intent__operation__target", "intent__agent", "plan")
    return Replan.objects.select_related(*related).get(pk=pk)


def _judge(exchange: Exchange, operation: Operation) -> PlanFacts | Refusal | str:
    """Facts of a good dry run, the target's refusal, or why this try failed."""
    if not isinstance(exchange, Answer):
        return f"{exchange.reason}: {exchange.detail}"
    refused = 400 <= exchange.status < 500 and exchange.status not in TRY_AGAIN
    if exchange.status != 200 and not refused:
        return f"the target answered {exchange.status}"
    try:
        body = parse_object(exchange.body)
        if exchange.status == 200:
            return inspect_plan(body, operation, base="")
    except Problem as fault:
        if not refused:
            return f"the dry run's answer is not a plan: {fault.code}"
        body = {}
    words = str(body.get("detail") or body.get("title") or "")[:500]
    return Refusal(exchange.status, str(body.get("code") or "")[:100], words)


def _complete(replan: Replan, facts: PlanFacts) -> None:
    """The new plan becomes the next revision; the lease decides who may say so (R-2)."""
    try:
        with transaction.atomic():
            intent = Intent.objects.locked(replan.intent_id)
            current = Replan.objects.filter(pk=replan.pk).get()
            if current.status == Replan.Status.CANCELLED:
                _store_abandoned(intent, replan, facts)
                return
            if current.lease != replan.lease or current.status != Replan.Status.LEASED:
                return
            predecessor = _latest(intent)
            if predecessor is not None and not _may_follow(predecessor):
                _drop(replan, "the plan is being committed")
                return
            _enrol(intent, replan, facts, predecessor)
    except PlanAlreadySubmitted:
        _failed_try(replan, "the dry run returned a plan ID that is known already")
    except Problem as fault:
        _failed_try(replan, f"the dry run's plan is not usable: {fault.code}")


def _enrol(intent: Intent, replan: Replan, facts: PlanFacts, predecessor: Plan | None) -> None:
    now = clock()
    if replan.cause in UNATTENDED:
        intent.unattended_replans += 1
    intent.status = Intent.Status.OPEN
    draft = _draft(intent, facts)
    plan = enrol(intent, draft, predecessor, actor=actors.REPLANNER, now=now)
    finish_replan(replan, plan, actor=actors.REPLANNER, now=now)


def _store_abandoned(intent: Intent, replan: Replan, facts: PlanFacts) -> None:
    """A-8: a plan that arrives for an abandoned intent is stored abandoned, its token destroyed."""
    predecessor = _latest(intent)
    if intent.status == Intent.Status.ABANDONED and (
        predecessor is None or predecessor.is_terminal
    ):
        draft = _draft(intent, facts)
        enrol(intent, draft, predecessor, actor=actors.REPLANNER, now=clock())


def _draft(intent: Intent, facts: PlanFacts) -> Draft:
    return Draft(
        agent=intent.agent,
        operation=intent.operation,
        task_id=intent.task_id,
        inputs=bytes(intent.inputs),
        facts=facts,
        content_sha256=content_sha256(dict(facts.document)),
        summary=intent.summary,
        reason=intent.reason,
    )


def _latest(intent: Intent) -> Plan | None:
    latest = Plan.objects.filter(intent=intent).order_by("-revision").first()
    return Plan.objects.locked(latest.pk) if latest else None


def _may_follow(plan: Plan) -> bool:
    """A successor may come to a dead plan, or to one that still waits and is superseded by it."""
    if plan.status == Status.COMMITTED:
        return False
    return plan.is_terminal or allowed(plan, Verb.SUPERSEDE)


def _drop(replan: Replan, reason: str) -> None:
    Replan.objects.filter(pk=replan.pk).update(
        status=Replan.Status.CANCELLED, lease=None, last_error=reason
    )
    record(Action.REPLAN_CANCELLED, actors.REPLANNER, replan.intent.subject(), {"reason": reason})


def _refused(replan: Replan, refusal: Refusal) -> None:
    """The target says that the wish cannot be planned as it is (R-1)."""
    reason = f"{replan.intent.target.name} answered {refusal.status}: {refusal.words}".strip()
    details = {"status": refusal.status, "code": refusal.code, "words": refusal.words}
    with transaction.atomic():
        intent = Intent.objects.locked(replan.intent_id)
        if not _holds(replan):
            return
        if refusal.status == 422 and refusal.code == "nothing-to-change":
            _end(intent, replan, Intent.Status.SETTLED, reason, Action.INTENT_SETTLED, details)
        elif replan.plan_id is None and replan.cause == Replan.Cause.FIRST:
            _end(intent, replan, Intent.Status.FAILED, reason, Action.INTENT_FAILED, details)
        else:
            Replan.objects.filter(pk=replan.pk).update(
                mode=Operation.ReplanMode.AGENT,
                status=Replan.Status.QUEUED,
                lease=None,
                reason=reason,
            )
            record(Action.REPLAN_HANDED_TO_AGENT, actors.REPLANNER, intent.subject(), details)


def _end(
    intent: Intent,
    replan: Replan,
    status: str,
    reason: str,
    action: Action,
    details: Mapping[str, Any],
) -> None:
    intent.status, intent.closed_reason = status, reason
    intent.save(update_fields=["status", "closed_reason"])
    Replan.objects.filter(pk=replan.pk).update(
        status=Replan.Status.DONE, finished_at=clock(), lease=None, last_error=reason
    )
    record(action, actors.target(intent.target_id, intent.target.name), intent.subject(), details)


def _holds(replan: Replan) -> bool:
    return Replan.objects.filter(
        pk=replan.pk, lease=replan.lease, status=Replan.Status.LEASED
    ).exists()


def _failed_try(replan: Replan, fault: str) -> None:
    """Back off 0, 30 s, 2, 10, 30 min, and stay (R-3)."""
    with transaction.atomic():
        now = clock()
        tries = replan.tries + 1
        wait = BACK_OFF[min(tries, len(BACK_OFF) - 1)]
        failed = Replan.objects.filter(
            pk=replan.pk, lease=replan.lease, status=Replan.Status.LEASED
        ).update(
            status=Replan.Status.QUEUED,
            lease=None,
            tries=tries,
            next_try_at=now + timedelta(seconds=wait),
            last_error=fault[:500],
        )
        if failed:
            details = {"tries": tries, "fault": fault[:500], "next_in_seconds": wait}
            record(Action.REPLAN_FAILED_TRY, actors.REPLANNER, replan.intent.subject(), details)


def due(head_start: timedelta) -> list[int]:
    """Server re-plans to run now, lapsed leases included; the sweep asks this."""
    now = clock() - head_start
    rows = Replan.objects.filter(
        Q(status=Replan.Status.QUEUED, next_try_at__lte=now)
        | Q(status=Replan.Status.LEASED, lease_until__lte=now),
        mode=Operation.ReplanMode.SERVER,
    )
    return list(rows.order_by("next_try_at").values_list("pk", flat=True)[:100])


# A person may plan again what is closed without effect, and freshen what still waits.
PLAN_AGAIN: Final = frozenset(
    {
        Status.EXPIRED,
        Status.CONFLICTED,
        Status.STALE,
        Status.REJECTED,
        Status.FAILED,
        Status.MISMATCHED,
        Status.PENDING,
    }
)


def plan_again(intent: Intent, *, actor: Actor) -> Replan:
    """A person's "Plan again": un-parks, hurries, or queues a re-plan. Raises NotReplannable."""
    with transaction.atomic():
        intent = Intent.objects.locked(intent.pk)
        now = clock()
        waiting = Replan.objects.waiting().filter(intent=intent).first()
        if waiting is None:
            return _queue_for_person(intent, actor, now)
        if waiting.status == Replan.Status.LEASED:
            return waiting
        waiting.status, waiting.next_try_at = Replan.Status.QUEUED, now
        waiting.save(update_fields=["status", "next_try_at"])
        intent.status, intent.unattended_replans = Intent.Status.OPEN, 0
        intent.save(update_fields=["status", "unattended_replans"])
        details = {"cause": waiting.cause, "mode": waiting.mode}
        record(Action.REPLAN_QUEUED, actor, intent.subject(), details)
        return waiting


def _queue_for_person(intent: Intent, actor: Actor, now: datetime) -> Replan:
    latest = _latest(intent)
    closed = intent.status in (Intent.Status.ABANDONED, Intent.Status.SETTLED)
    if closed or (latest is not None and latest.status not in PLAN_AGAIN):
        raise NotReplannable(plan_status=latest.status if latest else None)
    taken = latest is not None and Replan.objects.filter(plan=latest).exists()
    replan = Replan.objects.create(
        intent=intent,
        plan=latest if latest is not None and latest.is_terminal and not taken else None,
        cause=Replan.Cause.PERSON if latest else Replan.Cause.FIRST,
        mode=intent.operation.replan,
        next_try_at=now,
    )
    intent.status, intent.unattended_replans = Intent.Status.OPEN, 0
    intent.save(update_fields=["status", "unattended_replans"])
    details = {"cause": replan.cause, "mode": replan.mode}
    record(Action.REPLAN_QUEUED, actor, intent.subject(), details)
    return replan


def give_up(intent: Intent, *, actor: Actor, note: str) -> None:
    """A person ends an intent that waits for a re-plan (R-3). Raises NoteRequired (422)."""
    if not note.strip():
        raise NoteRequired(pointer="/note")
    with transaction.atomic():
        intent = Intent.objects.locked(intent.pk)
        end_intent(intent, actor=actor, reason="given up", note=note.strip())


def end_intent(intent: Intent, *, actor: Actor, reason: str, note: str = "") -> None:
    """Abandon an open intent whose commit is not in flight. The caller holds its lock."""
    latest = _latest(intent)
    if intent.status not in (Intent.Status.OPEN, Intent.Status.PARKED):
        raise NotReplannable(intent_status=intent.status)
    if latest is not None and (latest.status == Status.COMMITTED or latest.may_have_been_sent()):
        raise NotReplannable(plan_status=latest.status)
    details = {"reason": reason, "note": note}
    intent.status, intent.closed_reason = Intent.Status.ABANDONED, reason
    intent.save(update_fields=["status", "closed_reason"])
    cancel_replans(intent, actor)
    if latest is not None and not latest.is_terminal:
        transition(latest, Verb.ABANDON, actor=actor, details=details)
    record(Action.INTENT_ABANDONED, actor, intent.subject(), details)

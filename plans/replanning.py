"""Dead plans come back: queue, lease, dry run, park (R-1 … R-3)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import Q, QuerySet

from audit import actors
from audit.actions import Action
from audit.failpoints import failpoint
from audit.models import StatementTimestamp
from audit.recording import record
from plans import custody, gateway, health
from plans.bodies import code_of
from plans.clock import clock
from plans.enrolment import Draft, content_sha256, enrol
from plans.errors import PlanAlreadySubmitted, Problem
from plans.exchanges import Answer, Call, Exchange
from plans.inspection import PlanFacts, inspect_plan
from plans.lifecycle import Verb, allowed, transition
from plans.models import Agent, Intent, Operation, Plan, Replan, Target
from plans.reading import endpoint, target_secrets
from plans.status import Status
from plans.strict_json import JsonObject, parse_object

log = structlog.get_logger(__name__)

# Beyond the dry run's own deadline: time to write down what came of it.
LEASE_SLACK: Final = timedelta(seconds=45)
BACK_OFF: Final = (0, 30, 120, 600, 1800)
# A refusal with one of these is about us or the moment, not about the wish.
TRY_AGAIN: Final = frozenset({401, 403, 408, 425, 429})


@dataclass(frozen=True, slots=True)
class Refusal:
    """The target's 4xx to a dry run: its status, code and words."""

    status: int
    code: str
    words: str


def run(pk: int) -> int | None:
    """Make the fresh plan of one queued server re-plan; any number of calls come to one plan.

    The new plan's primary key, to be verified next; None: no plan came of it now.
    """
    replan = _claim(pk)
    if replan is None:
        return None
    intent = replan.intent
    call = Call(
        "POST",
        intent.operation.dry_run_path,
        body=bytes(intent.inputs),
        headers={"Content-Type": "application/json"},
    )
    failpoint("replan.claimed", intent.pk)
    exchange = gateway.exchange(endpoint(intent.target), call)
    failpoint("replan.answered", intent.pk)
    health.note(intent.target_id, exchange)
    match _judge(exchange, intent):
        case PlanFacts() as facts:
            fresh = _complete(replan, facts)
            failpoint("replan.recorded", intent.pk)
            return fresh
        case Refusal() as refusal:
            _refused(replan, refusal)
        case str() as fault:
            _failed_try(replan, fault)
    return None


def _claim(pk: int) -> Replan | None:
    """The lease by compare-and-set; a lapsed one is taken over (Q-1)."""
    with transaction.atomic():
        now = clock()
        target = Target.objects.get(intents__replans=pk)
        until = now + timedelta(seconds=target.total_timeout_seconds) + LEASE_SLACK
        mine = Replan.objects.filter(
            Q(status=Replan.Status.QUEUED, next_try_at__lte=now)
            | Q(status=Replan.Status.LEASED, lease_until__lte=now),
            pk=pk,
            mode=Operation.ReplanMode.SERVER,
        )
        lease = uuid.uuid4()
        leased = {"status": Replan.Status.LEASED, "lease": lease, "lease_until": until}
        if not mine.update(**leased):
            return None
    related = ("intent__target", "intent__operation__target", "intent__agent", "plan")
    return Replan.objects.select_related(*related).get(pk=pk)


def _judge(exchange: Exchange, intent: Intent) -> PlanFacts | Refusal | str:
    """Facts of a good dry run, the target's refusal, or why this try failed."""
    if not isinstance(exchange, Answer):
        return f"{exchange.reason}: {exchange.detail}"
    refused = 400 <= exchange.status < 500 and exchange.status not in TRY_AGAIN
    if exchange.status != 200 and not refused:
        return f"the target answered {exchange.status}"
    try:
        body = _clean(parse_object(exchange.body), intent.target)
        if exchange.status == 200:
            return inspect_plan(body, intent.operation, base="")
    except Problem as fault:
        if not refused:
            return f"the dry run's answer is not a plan: {fault.code}"
        body = {}
    words = str(body.get("detail") or body.get("title") or "")[:500]
    return Refusal(exchange.status, (code_of(body) or "")[:100], words)


def _clean(body: JsonObject, target: Target) -> JsonObject:
    """The answer with no secret's text but the token in its own place (A-18)."""
    token = body.pop("plan_token", None)
    secrets = [*target_secrets(target), *([token] if isinstance(token, str) else [])]
    clean = custody.mask(body, secrets)
    assert isinstance(clean, dict)
    return clean if token is None else {**clean, "plan_token": token}


def _complete(replan: Replan, facts: PlanFacts) -> int | None:
    """The new plan becomes the next revision; the lease decides who may say so (R-2)."""
    try:
        with transaction.atomic():
            # A report of a write either sees this plan or is seen by it.
            Agent.objects.select_for_update(no_key=True).get(pk=replan.intent.agent_id)
            intent = Intent.objects.locked(replan.intent_id)
            current = Replan.objects.filter(pk=replan.pk).get()
            if intent.status == Intent.Status.ABANDONED:
                _store_abandoned(intent, facts)
                return None
            if current.lease != replan.lease or current.status != Replan.Status.LEASED:
                return None
            predecessor = Plan.objects.latest_locked(intent)
            if predecessor is not None and not _may_follow(predecessor):
                _drop(replan, "the plan is being committed")
                return None
            return _enrol(intent, replan, facts, predecessor)
    except PlanAlreadySubmitted:
        _failed_try(replan, "the dry run returned a plan ID that is known already")
    except Problem as fault:
        _failed_try(replan, f"the dry run's plan is not usable: {fault.code}")
    return None


def _enrol(intent: Intent, replan: Replan, facts: PlanFacts, predecessor: Plan | None) -> int:
    now = clock()
    intent.status = Intent.Status.OPEN
    draft = _draft(intent, facts)
    actor = actors.REPLANNER
    failpoint("replan.inside", intent.pk)
    return enrol(intent, draft, predecessor, replan=replan, actor=actor, now=now).pk


def _store_abandoned(intent: Intent, facts: PlanFacts) -> None:
    """A-8: a plan that arrives for an abandoned intent is stored abandoned, its token destroyed."""
    predecessor = Plan.objects.latest_locked(intent)
    if predecessor is None or _may_follow(predecessor):
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
            _close_what_waits(intent)
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


def _close_what_waits(intent: Intent) -> None:
    """A settled intent has nothing left to decide on: its fresh plan was asked for (R-4)."""
    latest = Plan.objects.latest_locked(intent)
    if latest is not None and allowed(latest, Verb.SUPERSEDE):
        details = {"reason": "nothing is left to change"}
        transition(latest, Verb.MARK_STALE, actor=actors.REPLANNER, details=details)


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


def queued_for(plan_pk: int) -> int | None:
    """The server re-plan that waits for this dead plan, if there is one."""
    rows = Replan.objects.filter(
        plan=plan_pk, status=Replan.Status.QUEUED, mode=Operation.ReplanMode.SERVER
    )
    return rows.values_list("pk", flat=True).first()


def due(head_start: timedelta) -> QuerySet[Replan, int]:
    """Server re-plans to run now, lapsed leases included; the sweep asks this."""
    now = StatementTimestamp() - head_start
    rows = Replan.objects.filter(
        Q(status=Replan.Status.QUEUED, next_try_at__lte=now)
        | Q(status=Replan.Status.LEASED, lease_until__lte=now),
        mode=Operation.ReplanMode.SERVER,
    )
    return rows.order_by("next_try_at").values_list("pk", flat=True)[:100]

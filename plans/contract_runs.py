"""Does a target keep its side of the contract? Asked for by a person, run outside the request.

Nothing is ever committed from here: only the checks that need no commit are made.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

import structlog
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet

from audit import actors
from audit.actions import Action
from audit.actors import Actor
from audit.models import ClockTimestamp, StatementTimestamp
from audit.recording import Subject, record
from plans.canonical import jcs
from plans.models import ContractRun, Operation, Plan

log = structlog.get_logger(__name__)

RUN_SECONDS: Final = 60.0
CALL_SECONDS: Final = 10.0
# The run, its last call, and the writing down.
LEASE: Final = timedelta(seconds=RUN_SECONDS + 3 * CALL_SECONDS)
TRIES: Final = 2
KEPT: Final = 5
# Wishes to plan with: the newest may be true already.
WISHES: Final = 5


def ask(operation: Operation, actor: Actor) -> ContractRun:
    """Queue a run for an operation's target, or answer with the one that is under way."""
    target = operation.target
    try:
        with transaction.atomic():
            run = ContractRun.objects.create(
                target=target, operation=operation, requested_by=actor.label
            )
            subject = Subject(target=target.name)
            record(Action.CONTRACT_TEST_ASKED, actor, subject, {"operation": operation.name})
            old = ContractRun.objects.filter(target=target).order_by("-pk")
            kept = list(old.values_list("pk", flat=True)[:KEPT])
            ContractRun.objects.filter(target=target).exclude(pk__in=kept).delete()
    except IntegrityError:
        return ContractRun.objects.get(target=target, status__in=ContractRun.WAITING)
    return run


def wishes(operation: Operation) -> list[bytes]:
    """Inputs to make plans with: the schema's examples, else those of the latest plans."""
    schema = operation.inputs_schema
    examples = schema.get("examples") if isinstance(schema, dict) else None
    if isinstance(examples, list):
        found = [jcs(each) for each in examples if isinstance(each, dict)]
        if found:
            return found[:WISHES]
    rows = Plan.objects.filter(operation=operation).order_by("-pk").values_list("inputs", flat=True)
    return list(dict.fromkeys(bytes(each) for each in rows[:WISHES]))


def latest(target_ids: Iterable[int]) -> dict[int, ContractRun]:
    """The newest run of each of these targets."""
    rows = ContractRun.objects.filter(target__in=list(target_ids)).order_by("target", "-pk")
    newest = rows.distinct("target").select_related("operation")
    return {run.target_id: run for run in newest}


def due(head_start: timedelta) -> QuerySet[ContractRun, int]:
    """Runs that nobody has begun, or whose worker is gone; the sweep asks this."""
    rung = StatementTimestamp() - head_start
    rows = ContractRun.objects.filter(status__in=ContractRun.WAITING, due_at__lte=rung)
    return rows.order_by("due_at").values_list("pk", flat=True)


def conduct(pk: int) -> None:
    """Make the checks and store what they found. Any number of calls make one run (Q-1)."""
    claimed = _claim(pk)
    if claimed is None:
        return
    # The checks bring an HTTP library that nothing else here needs: only where they are made.
    from plans.contract_checks import check

    _finish(claimed, ContractRun.Status.DONE, report=check(claimed, wishes(claimed.operation)))


def _claim(pk: int) -> ContractRun | None:
    rows = ContractRun.objects.filter(
        pk=pk, status__in=ContractRun.WAITING, due_at__lte=ClockTimestamp()
    )
    taken = rows.filter(tries__lt=TRIES).update(
        status=ContractRun.Status.RUNNING, due_at=ClockTimestamp() + LEASE, tries=F("tries") + 1
    )
    found = ContractRun.objects.select_related("target", "operation").filter(pk=pk).first()
    if taken or found is None:
        return found
    if found.waiting and found.tries >= TRIES and rows.exists():
        log.error("contract.lost", target=found.target.name)
        _finish(found, ContractRun.Status.LOST)
    return None


def _finish(claimed: ContractRun, status: str, **columns: Any) -> None:
    """Only for whoever holds the claim: a run that lost its lease has no say."""
    with transaction.atomic():
        mine = ContractRun.objects.filter(
            pk=claimed.pk, status__in=ContractRun.WAITING, tries=claimed.tries
        )
        if not mine.update(
            status=ContractRun.Status(status), finished_at=ClockTimestamp(), **columns
        ):
            return
        outcome = _in_words(columns.get("report"))
        details = {"operation": claimed.operation.name, "outcome": outcome}
        subject = Subject(target=claimed.target.name)
        record(Action.CONTRACT_TESTED, actors.VERIFIER, subject, details)


def _in_words(report: dict[str, Any] | None) -> str:
    if report is None:
        return "it came to no end"
    if report["stopped"]:
        return "it could not begin"
    wrong = report["counts"]["wrong"]
    if not wrong and report["cut_short"]:
        return "it was not finished"
    if wrong:
        return f"{wrong} {'check' if wrong == 1 else 'checks'} found something wrong"
    return "it conforms as far as it was checked"

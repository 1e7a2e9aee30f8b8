"""Celery is a doorbell: a task carries a primary key, and the row says what is due (Q-1)."""

from __future__ import annotations

from typing import Any

import structlog
from celery import Task, shared_task
from django.db import transaction

from plans import contract_runs, replanning, sweeper, verification, webhooks
from plans.models import Plan
from plans.outcomes import Kind
from plans.status import REPLANNED, Status

log = structlog.get_logger(__name__)


@shared_task
def commit_plan(pk: int) -> None:
    """Runs on the commit queue, with workers of its own (Q-3)."""
    if sweeper.carry_out(pk) is not Kind.APPLIED:
        ring_for(Plan.objects.only("pk", "status").get(pk=pk))


@shared_task
def verify_plan(pk: int) -> None:
    verification.verify(pk)


@shared_task
def run_replan(pk: int) -> None:
    plan = replanning.run(pk)
    if plan is not None:
        verification.verify(plan)


@shared_task
def deliver_webhook(pk: int) -> None:
    """Rung when a person wants something sent again; all else the sweep finds (W-1)."""
    webhooks.deliver(pk)


@shared_task
def check_contract(pk: int) -> None:
    """A person asked; bounded by the run's own time."""
    contract_runs.conduct(pk)


def ring_for(plan: Plan) -> None:
    """Ring for whatever this plan's status makes due: a commit, a read-back or a fresh plan."""
    if plan.status == Status.APPROVED:
        ring(commit_plan, plan.pk)
    elif plan.status == Status.VERIFYING:
        ring(verify_plan, plan.pk)
    elif plan.status in REPLANNED:
        replan = replanning.queued_for(plan.pk)
        if replan is not None:
            ring(run_replan, replan)


def ring(task: Task[Any, Any], pk: int) -> None:
    """Ring after COMMIT. A dead broker is only logged: the sweep finds the row (B-5)."""
    transaction.on_commit(lambda: _publish(task, pk), robust=True)


def _publish(task: Task[Any, Any], pk: int) -> None:
    try:
        task.delay(pk)
    except Exception as fault:  # kombu and redis raise a dozen kinds; none may reach a person
        log.warning("doorbell.failed", task=task.name, pk=pk, fault=type(fault).__name__)

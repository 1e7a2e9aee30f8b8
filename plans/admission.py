"""How much one agent may ask: pending cap and rate, under the agent's lock (A-20)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db import connection
from django.db.models import BigIntegerField

from audit.statements import Slot, Statement
from plans.errors import RateLimited, TaskEnded, TooManyPending, Unauthenticated
from plans.models import Agent, Task

# Words of SQL: the same written with querysets takes as long as the rest of a submission.
_LOOK: Final = """
    SELECT
        clock_timestamp(),
        EXISTS (SELECT FROM plans_task WHERE agent_id = %(agent)s AND task_id = %(task_id)s),
        (
            SELECT count(*) FROM plans_plan
            WHERE agent_id = %(agent)s AND status IN ('verifying', 'pending')
        ) + (
            SELECT count(*) FROM plans_replan AS replan JOIN plans_intent AS intent
            ON intent.id = replan.intent_id
            WHERE intent.agent_id = %(agent)s AND replan.cause = 'first'
            AND replan.status IN ('queued', 'leased', 'parked')
        )
"""


_LOCKED: Final = Statement(
    lambda: Agent.objects.select_for_update(no_key=True).filter(pk=Slot("agent", BigIntegerField()))
)


def lock_agent(agent: Agent, task_id: str) -> Agent:
    """The agent's row under its lock, taken before any intent's and plan's.

    Raises Unauthenticated for an agent that was switched off, TaskEnded (409, A-11) for a task
    that is over.
    """
    row = _LOCKED.get(agent=agent.pk)
    _refuse(row, task_id, ended=Task.objects.filter(agent=row, task_id=task_id).exists())
    return row


def _refuse(agent: Agent, task_id: str, *, ended: bool) -> None:
    if not agent.active:
        raise Unauthenticated("This agent is switched off.")
    if ended:
        raise TaskEnded(task_id=task_id)


def admit(agent: Agent, task_id: str, *, capped: bool = True) -> datetime:
    """Let one more submission of the agent in, or raise TooManyPending or RateLimited (429).

    A re-plan is not `capped`. Holds the agent's row lock, so that the cap is kept under any
    concurrency; the answer is the database's clock after it. Raises Unauthenticated for an agent
    that was switched off, TaskEnded (409, A-11) for a task that is over.
    """
    row = _LOCKED.get(agent=agent.pk)
    now, ended, waiting = _look(row, task_id)
    _refuse(row, task_id, ended=ended)
    _take_token(row, now)
    if capped and waiting >= row.pending_cap:
        raise TooManyPending(
            f"{row.name} has {waiting} plans that wait for people; its limit is {row.pending_cap}.",
            limit=row.pending_cap,
            retry_after=30,
        )
    return now


def _look(agent: Agent, task_id: str) -> tuple[datetime, bool, int]:
    """The clock, whether the task has ended, and how much waits: one statement, after the lock."""
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, {"agent": agent.pk, "task_id": task_id})
        now, ended, waiting = cursor.fetchone()
    return now, ended, waiting


def _take_token(agent: Agent, now: datetime) -> None:
    """A token bucket as large as one minute's allowance."""
    limit = float(agent.rate_limit_per_minute)
    if agent.rate_at is None:
        tokens = limit
    else:
        elapsed = max(0.0, (now - agent.rate_at).total_seconds())
        tokens = min(limit, agent.rate_tokens + elapsed * limit / 60)
    if tokens < 1:
        raise RateLimited(
            f"{agent.name} may submit {agent.rate_limit_per_minute} plans a minute.",
            limit=agent.rate_limit_per_minute,
            retry_after=max(1.0, (1 - tokens) * 60 / limit) if limit else 60,
        )
    Agent.objects.filter(pk=agent.pk).update(rate_tokens=tokens - 1, rate_at=now)

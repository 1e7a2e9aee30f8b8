"""How much one agent may ask: pending cap and rate, under the agent's lock (A-20)."""

from __future__ import annotations

from datetime import datetime

from plans.clock import clock
from plans.errors import RateLimited, TaskEnded, TooManyPending, Unauthenticated
from plans.models import Agent, Plan, Replan, Task
from plans.status import Status


def lock_agent(agent: Agent, task_id: str) -> Agent:
    """The agent's row under its lock, taken before any intent's and plan's.

    Raises Unauthenticated for an agent that was switched off, TaskEnded (409, A-11) for a task
    that is over.
    """
    row = Agent.objects.select_for_update(no_key=True).get(pk=agent.pk)
    if not row.active:
        raise Unauthenticated("This agent is switched off.")
    if Task.objects.filter(agent=row, task_id=task_id).exists():
        raise TaskEnded(task_id=task_id)
    return row


def admit(agent: Agent, task_id: str) -> datetime:
    """Let one more submission of the agent in, or raise TooManyPending or RateLimited (429).

    Holds the agent's row lock, so that the cap is kept under any concurrency; the answer is the
    database's clock after it.
    """
    row = lock_agent(agent, task_id)
    now = clock()
    _take_token(row, now)
    waiting = Plan.objects.filter(agent=row, status__in=[Status.VERIFYING, Status.PENDING]).count()
    waiting += Replan.objects.waiting().filter(intent__agent=row, cause="first").count()
    if waiting >= row.pending_cap:
        raise TooManyPending(
            f"{row.name} has {waiting} plans that wait for people; its limit is {row.pending_cap}.",
            limit=row.pending_cap,
            retry_after=30,
        )
    return now


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

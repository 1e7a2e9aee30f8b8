"""What an agent says about its task: it wrote something (A-10), or it is over (A-11)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db import transaction

from audit import actors
from audit.actions import Action
from audit.actors import Actor
from audit.recording import Subject, record
from plans.abandonment import abandon_intent
from plans.admission import lock_agent
from plans.enrolment import WRITTEN
from plans.lifecycle import Verb, allowed, transition
from plans.models import Agent, Intent, Plan, Replan, Task, Write
from plans.retrying import retried
from plans.status import ENGAGED, OPEN


@dataclass(slots=True)
class Hit:
    """The plans that a report closed, and those in flight that it could only name."""

    closed: list[Plan] = field(default_factory=list)
    in_flight: list[Plan] = field(default_factory=list)


@retried
def mark_written(agent: Agent, task_id: str, objects: Sequence[str], tool: str) -> Hit:
    """Store a write and make the open plans of the task that it touches stale (A-10)."""
    with transaction.atomic():
        lock_agent(agent, task_id)
        write = Write.objects.create(
            agent=agent, task_id=task_id, objects_written=list(objects), tool=tool
        )
        subject = Subject(agent=agent.name, task_id=task_id)
        details = {"objects": list(objects), "tool": tool}
        record(Action.TASK_WRITES_REPORTED, _as_actor(agent), subject, details)
        hit = Hit()
        for pk in _alive(agent, task_id):
            plan = Plan.objects.locked_with_intent(pk)
            if write.hits(plan.covers):
                _close(plan, hit, Verb.MARK_STALE, agent, {"reason": WRITTEN, "tool": tool})
    return hit


@retried
def end_task(agent: Agent, task_id: str, outcome: str) -> Hit:
    """Abandon every open intent of the task; its event says how many plans it had (A-11)."""
    with transaction.atomic():
        Agent.objects.select_for_update(no_key=True).get(pk=agent.pk)
        _, new = Task.objects.get_or_create(
            agent=agent, task_id=task_id, defaults={"outcome": outcome}
        )
        hit = Hit()
        for intent in _open_intents(agent, task_id):
            plan, in_flight = abandon_intent(
                Intent.objects.locked(intent), reason="task_end", note="", actor=_as_actor(agent)
            )
            if plan is not None:
                (hit.in_flight if in_flight else hit.closed).append(plan)
        if new:
            plans = Plan.objects.filter(agent=agent, task_id=task_id).count()
            details = {"outcome": outcome, "plans": plans, "abandoned": len(hit.closed)}
            subject = Subject(agent=agent.name, task_id=task_id)
            record(Action.TASK_ENDED, _as_actor(agent), subject, details)
    return hit


def _as_actor(agent: Agent) -> Actor:
    return actors.agent(agent.pk, agent.name)


def _alive(agent: Agent, task_id: str) -> list[int]:
    rows = Plan.objects.filter(agent=agent, task_id=task_id, status__in=OPEN | ENGAGED)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def _close(plan: Plan, hit: Hit, verb: Verb, agent: Agent, details: dict[str, str]) -> None:
    if allowed(plan, verb):
        hit.closed.append(transition(plan, verb, actor=_as_actor(agent), details=details))
    elif not plan.is_terminal:
        hit.in_flight.append(plan)


def _open_intents(agent: Agent, task_id: str) -> list[uuid.UUID]:
    """Intents with a plan that is not closed, or with a re-plan that waits."""
    own = Intent.objects.filter(agent=agent, task_id=task_id)
    alive = own.filter(plans__status__in=OPEN | ENGAGED).values_list("pk", flat=True)
    waiting = own.filter(replans__status__in=Replan.WAITING).values_list("pk", flat=True)
    return sorted({*alive, *waiting})

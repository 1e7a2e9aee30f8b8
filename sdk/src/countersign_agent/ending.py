"""The end of a task: nothing stays that could be sent, and it is recorded."""

from __future__ import annotations

from countersign_agent.committing import Commit
from countersign_agent.errors import Refused, Unanswered
from countersign_agent.flows import Flow, do
from countersign_agent.results import EndedTask
from countersign_agent.state import TaskState
from countersign_agent.surroundings import Surroundings
from countersign_agent.views import TaskEnd


def end(around: Surroundings, state: TaskState, outcome: str) -> Flow[TaskEnd]:
    """Drop every token, abandon what is open, and tell the server, which records it (A-11).

    First it is tried to find out what became of commits that are in doubt; what stays in doubt is
    `unresolved`, and the state keeps that, without the token, until somebody removes it.
    """
    try:
        yield from _find_out(around, state)
    finally:
        abandoned = _dropped(state)
        state.ended, state.outcome = True, state.outcome or outcome
        yield from around.keep(state)
    unresolved = tuple(p.plan_id for _, p in state.current() if p.server is None and p.in_doubt)
    told, recorded = yield from _recorded(around, state)
    if recorded and not unresolved:
        yield from do(around.store.drop, state.task_id)
    if told is not None:
        abandoned += tuple(plan.plan_id for plan in told.abandoned)
    in_flight = tuple(plan.plan_id for plan in told.in_flight) if told else ()
    return TaskEnd(tuple(dict.fromkeys(abandoned)), in_flight, unresolved, recorded)


def _find_out(around: Surroundings, state: TaskState) -> Flow[None]:
    for intent, plan in state.current():
        lost = plan.server is None and plan.in_doubt and plan.status != "unresolved"
        if lost and intent.target in around.targets:
            yield from Commit(around, state, intent, plan).carry_out(around.patience.ending)


def _dropped(state: TaskState) -> tuple[str, ...]:
    """Every token goes. The plans here that were still open: abandoned with it."""
    abandoned = []
    for _, plan in state.plans():
        plan.drop_token()
        if plan.status in ("planned", "submitting") and plan.server is None:
            plan.status = "abandoned"
            abandoned.append(plan.plan_id)
    return tuple(abandoned)


def _recorded(around: Surroundings, state: TaskState) -> Flow[tuple[EndedTask | None, bool]]:
    """What the server abandoned; whether it knows of the end, if there is a server at all."""
    if around.api is None:
        return None, True
    try:
        return (yield from around.api.end_task(state.task_id, state.outcome)), True
    except (Unanswered, Refused):
        return None, False

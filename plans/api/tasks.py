"""Tasks: what the agent wrote itself, and that a task is over (A-10, A-11)."""

from collections.abc import Sequence

from django.http import HttpResponse
from ninja import Router

from plans import listing, tasks
from plans.api.callers import MAY_WRITE, REFUSALS, ApiRequest
from plans.envelopes import ProblemOut, TaskEndOut, WritesOut
from plans.errors import NotFound
from plans.inspection import TASK_ID
from plans.models import Agent, Plan
from plans.replies import json_reply
from plans.representation import Members, represent
from plans.schemas import TaskEndIn, WritesIn
from plans.taskwork import end_task, mark_written

router = Router()


@router.post(
    "/tasks/{task_id}/writes",
    auth=MAY_WRITE,
    response={200: WritesOut, REFUSALS: ProblemOut},
    summary="Report a write",
)
def report_writes(request: ApiRequest, task_id: str, body: WritesIn) -> HttpResponse:
    """The dirty flag: open plans of the task that cover a written object become stale."""
    agent = request.auth.agent
    hit = mark_written(agent, _known(task_id), body.objects, body.tool)
    for plan in hit.closed:
        tasks.ring_for(plan)
    return json_reply({"stale": _told(agent, hit.closed), "in_flight": _told(agent, hit.in_flight)})


@router.post(
    "/tasks/{task_id}/end",
    auth=MAY_WRITE,
    response={200: TaskEndOut, REFUSALS: ProblemOut},
    summary="End a task",
)
def end_agent_task(request: ApiRequest, task_id: str, body: TaskEndIn) -> HttpResponse:
    """Every open intent of the task is abandoned, its tokens destroyed."""
    agent = request.auth.agent
    hit = end_task(agent, _known(task_id), body.outcome or "")
    abandoned, in_flight = _told(agent, hit.closed), _told(agent, hit.in_flight)
    return json_reply({"abandoned": abandoned, "in_flight": in_flight})


def _known(task_id: str) -> str:
    if not TASK_ID.fullmatch(task_id):
        raise NotFound()
    return task_id


def _told(agent: Agent, plans: Sequence[Plan]) -> list[Members]:
    rows = list(listing.own_plans(agent).filter(pk__in=[plan.pk for plan in plans]).order_by("pk"))
    return represent(rows, listing.read_at(rows[0])) if rows else []

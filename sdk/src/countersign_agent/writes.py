"""The dirty flag: what a program's own tools write to, and the plans that this touches (A-10)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from countersign_agent.errors import Refused, TaskEnded, Unanswered
from countersign_agent.flows import Flow
from countersign_agent.results import Plan, Writes
from countersign_agent.state import TaskState, Write
from countersign_agent.surroundings import Surroundings
from countersign_agent.views import Written

type Objects = str | Sequence[str] | Callable[..., Sequence[str]]

MOST_OBJECTS: Final = 200
LONGEST_OBJECT: Final = 300
LONGEST_TOOL: Final = 200


def named(
    objects: Objects,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> list[str]:
    """The objects of one call: `"invoice/{invoice_id}"` filled in from its arguments."""
    if callable(objects):
        return list(objects(*args, **kwargs))
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    templates = [objects] if isinstance(objects, str) else objects
    return [template.format(**bound.arguments) for template in templates]


def write_down(
    around: Surroundings, state: TaskState, objects: Sequence[str], tool: str
) -> Flow[Written]:
    """Set the dirty flags, keep them, and tell the server. ValueError for what names no object."""
    _check(objects, tool)
    hit = state.mark_written(frozenset(objects), tool)
    if around.api is not None and not state.ended:
        state.unreported.append(Write(tuple(objects), tool))
    yield from around.keep(state)
    told = yield from report(around, state)
    dirty = tuple(plan.plan_id for plan in hit if plan.server is None)
    if told is None:
        return Written(dirty, reported=not state.unreported)
    return Written(dirty, _ids(told.stale), _ids(told.in_flight))


def report(around: Surroundings, state: TaskState) -> Flow[Writes | None]:
    """Tell the server what it has not been told; what it does not take now is kept for later."""
    told: Writes | None = None
    while around.api is not None and state.unreported:
        write = state.unreported[0]
        try:
            new = yield from around.api.report_writes(state.task_id, write.objects, write.tool)
            told = _both(told, new)
        except TaskEnded:
            pass
        except (Unanswered, Refused):
            return None
        if write in state.unreported:
            state.unreported.remove(write)
        yield from around.keep(state)
    return told


def _both(told: Writes | None, new: Writes) -> Writes:
    if told is None:
        return new
    return Writes(told.stale + new.stale, told.in_flight + new.in_flight)


def _check(objects: Sequence[str], tool: str) -> None:
    if isinstance(objects, str) or not 1 <= len(objects) <= MOST_OBJECTS:
        raise ValueError(f"a write names 1 to {MOST_OBJECTS} objects")
    if any(not 1 <= len(each) <= LONGEST_OBJECT for each in objects):
        raise ValueError(f"an object's name has 1 to {LONGEST_OBJECT} characters")
    if not 1 <= len(tool) <= LONGEST_TOOL:
        raise ValueError(f"a tool's name has 1 to {LONGEST_TOOL} characters")


def _ids(plans: Sequence[Plan]) -> tuple[str, ...]:
    return tuple(plan.plan_id for plan in plans)

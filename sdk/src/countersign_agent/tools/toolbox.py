"""Carries a model's tool calls out in one task. Whatever happens, there is an answer to read."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from countersign_agent.documents import freeze_inputs
from countersign_agent.errors import CountersignError
from countersign_agent.flows import Flow, awaitable, sync
from countersign_agent.guard import AsyncGuardedTask, GuardedTask
from countersign_agent.task import Task
from countersign_agent.tools import answers
from countersign_agent.tools.answers import Answer
from countersign_agent.tools.arguments import BadArguments, read_arguments
from countersign_agent.tools.definitions import (
    LONGEST_WAIT,
    TOOLS,
    WAIT_FOR_DECISION,
    Offer,
    Tool,
    offering,
)

logger = logging.getLogger("countersign_agent.tools")
_KNOWN: Final = (*TOOLS, WAIT_FOR_DECISION)


class Dispatch:
    """One task's tools, as flows."""

    def __init__(self, task: Task, offers: Sequence[Offer]) -> None:
        self.task = task
        self.offers = {(each.target, each.operation) for each in offers}
        self.tools = {tool.name: tool for tool in offering(offers, _KNOWN)}

    def call(self, name: str, arguments: Mapping[str, Any] | str | None) -> Flow[Answer]:
        """Carry one call out. It never raises: a refusal is an answer with an `error`."""
        try:
            if name not in self.tools:
                raise BadArguments(f"There is no such tool; there are {', '.join(self.tools)}.")
            given = read_arguments(self.tools[name], arguments)
            verb = getattr(self, f"_{name}")
            answer: Answer = yield from verb(**given)
        except CountersignError as error:
            answer = answers.about_error(error)
        except Exception as error:
            # Neither message nor traceback: a library's may quote what it was given.
            logger.error("%s failed: %s", name, type(error).__name__)
            answer = answers.about_defect(error)
        return answer

    def _propose_write(
        self,
        target: str,
        operation: str,
        inputs: Mapping[str, Any],
        reason: str,
        replaces: str | None = None,
    ) -> Flow[Answer]:
        if self.offers and (target, operation) not in self.offers:
            raise BadArguments(f"{target} has no operation {operation} to propose.")
        try:
            freeze_inputs(inputs)
        except (ValueError, TypeError):
            raise BadArguments(
                "inputs have no exact JSON text: integers beyond 2^53, or no JSON."
            ) from None
        if replaces is None:
            outcome = yield from self.task.propose(target, operation, inputs, reason=reason)
        else:
            yield from self._check_replaced(replaces, target, operation)
            outcome = yield from self.task.revise(replaces, inputs, reason=reason)
        return answers.about_plan(outcome)

    def _check_replaced(self, plan_id: str, target: str, operation: str) -> Flow[None]:
        state = yield from self.task.open()
        intent, _ = state.find(plan_id)
        if (intent.target, intent.operation) != (target, operation):
            raise BadArguments("replaces is a plan of another target or operation.")

    def _plan_status(self, plan_id: str) -> Flow[Answer]:
        return answers.about_plan((yield from self.task.status(plan_id)))

    def _wait_for_decision(self, plan_id: str, seconds: int = LONGEST_WAIT) -> Flow[Answer]:
        return answers.about_plan((yield from self.task.wait(plan_id, seconds)))

    def _report_write(self, objects: list[str], tool: str) -> Flow[Answer]:
        return answers.about_writes((yield from self.task.wrote(objects, tool)))

    def _withdraw(self, plan_id: str, note: str = "") -> Flow[Answer]:
        return answers.about_plan((yield from self.task.withdraw(plan_id, note=note)))

    def _end_task(self, outcome: str = "") -> Flow[Answer]:
        return answers.about_end((yield from self.task.end(outcome)))


class Toolbox:
    """For programs with threads.

        tools = Toolbox(task)
        model.create(tools=for_openai(tools.tools), …)
        answer = tools.call(call.name, call.arguments)      # JSON values, for the model to read

    With `offers` the model learns which operations there are, and can propose no other.
    """

    def __init__(self, task: GuardedTask, offers: Sequence[Offer] = ()) -> None:
        self.core = Dispatch(task.core, offers)
        self.tools: tuple[Tool, ...] = offering(offers)

    call = sync(Dispatch.call)


class AsyncToolbox:
    """The same for the event loop: `call` is awaited."""

    def __init__(self, task: AsyncGuardedTask, offers: Sequence[Offer] = ()) -> None:
        self.core = Dispatch(task.core, offers)
        self.tools: tuple[Tool, ...] = offering(offers)

    call = awaitable(Dispatch.call)

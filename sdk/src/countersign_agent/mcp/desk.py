"""The tasks that a server works on: found again in its store, begun anew after one has ended."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from countersign_agent.client import AsyncClient
from countersign_agent.errors import CountersignError, StateDamaged, StateHeld, Unanswered
from countersign_agent.guard import AsyncGuard, AsyncGuardedTask
from countersign_agent.mcp.settings import TASK_ID, KnownTarget, Settings, SettingsFault
from countersign_agent.targets import AsyncHttpTarget
from countersign_agent.tools import END_TASK, WAIT_FOR_DECISION, AsyncToolbox
from countersign_agent.tools.answers import Answer, about_error
from countersign_agent.tools.arguments import BadArguments

PREFIX: Final = "mcp-"
CALL_SECONDS: Final = 20.0
"""For one call of the REST interface, retries included: a client's patience ends at 60."""
MOST_SECONDS: Final = 50.0
WAIT_SECONDS: Final = 24.5
"""The longest that a tool and `wait_for_decision` take, whatever Countersign does."""


class Desk:
    """One agent's guard and its open tasks. Leaving it puts every task down, and ends none."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.client = AsyncClient(settings.url, settings.api_key.reveal(), seconds=CALL_SECONDS)
        self.targets = {each.name: _target(each) for each in settings.targets}
        self.store = settings.store()
        self.guard = AsyncGuard(self.client, self.targets, self.store)
        self.tasks: dict[str, AsyncGuardedTask] = {}
        self.lock = asyncio.Lock()

    @classmethod
    def opened(cls, settings: Settings) -> Self:
        """SettingsFault for an address, a key or a file that cannot be used."""
        try:
            return cls(settings)
        except (ValueError, StateDamaged) as error:
            raise SettingsFault(str(error)) from None
        except OSError as error:
            raise SettingsFault(f"COUNTERSIGN_STATE cannot be used: {error.strerror}.") from None

    async def call(self, name: str, arguments: Mapping[str, Any] | None, task_id: str) -> Answer:
        """One tool call in a task; without an ID in the one that is this server's."""
        try:
            if task_id and not TASK_ID.fullmatch(task_id):
                raise BadArguments(f"A task's ID has to match {TASK_ID.pattern}.")
            async with self.lock:
                task = await self._task(task_id or self.settings.task_id)
        except CountersignError as error:
            return about_error(error)
        toolbox = AsyncToolbox(task, self.settings.offers)
        answer = await _in_time(toolbox, name, arguments)
        if name == END_TASK.name and "error" not in answer:
            self.tasks.pop(task.task_id, None)
        return answer

    async def _task(self, task_id: str) -> AsyncGuardedTask:
        if task_id and task_id in self.tasks:
            return self.tasks[task_id]
        if not task_id:
            mine = [task for name, task in self.tasks.items() if name.startswith(PREFIX)]
            task = mine[0] if mine else await self._taken_up()
        else:
            task = self.guard.task(task_id)
        self.tasks[task.task_id] = task
        return task

    async def _taken_up(self) -> AsyncGuardedTask:
        """A task that an earlier process left open and no other holds, else a new one."""
        for task_id in await asyncio.to_thread(self.store.tasks):
            if not task_id.startswith(PREFIX):
                continue
            task = self.guard.task(task_id)
            try:
                await task.plans()
            except (StateHeld, StateDamaged):
                continue
            if task.core.known is not None and not task.core.known.ended:
                return task
            await task.suspend()
        return self.guard.task(f"{PREFIX}{uuid.uuid4().hex[:16]}")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self.tasks.values():
            await task.suspend()
        for target in self.targets.values():
            await target.close()
        await self.client.close()


async def _in_time(toolbox: AsyncToolbox, name: str, arguments: Mapping[str, Any] | None) -> Answer:
    """A client that gave up would hear nothing at all. What is cut off is as if it had crashed:
    the state knows how far it came, and the same call goes on from there.
    """
    seconds = WAIT_SECONDS if name == WAIT_FOR_DECISION.name else MOST_SECONDS
    try:
        async with asyncio.timeout(seconds):
            return await toolbox.call(name, arguments)
    except TimeoutError:
        return about_error(Unanswered("Countersign has not answered yet."))


def _target(known: KnownTarget) -> AsyncHttpTarget:
    return AsyncHttpTarget(known.base_url, known.credential.reveal(), **known.paths)

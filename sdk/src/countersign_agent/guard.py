"""`Guard` and `AsyncGuard`: the discipline of two-phase writes, around a program's targets."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self

from countersign_agent.client import AsyncClient, Client
from countersign_agent.errors import OutcomeUnknown, Unanswered
from countersign_agent.flows import arun, awaitable, run, sync
from countersign_agent.instants import Clock, now
from countersign_agent.stores import MemoryStore, Store
from countersign_agent.surroundings import Patience, Surroundings
from countersign_agent.targets import AsyncTarget, Target
from countersign_agent.task import Task
from countersign_agent.views import TaskEnd
from countersign_agent.writes import Objects, named

_ABORTED = "ended by an exception"


class GuardedTask:
    """One task in a program's hands. `with` ends it, also on an exception; `suspend` does not."""

    def __init__(self, core: Task) -> None:
        self.core = core

    plan = sync(Task.plan)
    commit = sync(Task.commit)
    propose = sync(Task.propose)
    submit = sync(Task.submit)
    revise = sync(Task.revise)
    status = sync(Task.status)
    wait = sync(Task.wait)
    withdraw = sync(Task.withdraw)
    wrote = sync(Task.wrote)
    plans = sync(Task.plans)
    end = sync(Task.end)
    suspend = sync(Task.close)

    @property
    def task_id(self) -> str:
        return self.core.task_id

    def __enter__(self) -> Self:
        run(self.core.open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.core.known is not None:
            _tell(self.end(_ABORTED if kind else ""), error)


class AsyncGuardedTask:
    """The same for the event loop."""

    def __init__(self, core: Task) -> None:
        self.core = core

    plan = awaitable(Task.plan)
    commit = awaitable(Task.commit)
    propose = awaitable(Task.propose)
    submit = awaitable(Task.submit)
    revise = awaitable(Task.revise)
    status = awaitable(Task.status)
    wait = awaitable(Task.wait)
    withdraw = awaitable(Task.withdraw)
    wrote = awaitable(Task.wrote)
    plans = awaitable(Task.plans)
    end = awaitable(Task.end)
    suspend = awaitable(Task.close)

    @property
    def task_id(self) -> str:
        return self.core.task_id

    async def __aenter__(self) -> Self:
        await arun(self.core.open())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.core.known is not None:
            _tell(await self.end(_ABORTED if kind else ""), error)


class Guard:
    """For programs with threads.

        guard = Guard(Client(url, key), {"billing": HttpTarget(…)}, JsonFileStore("state.json"))
        with guard.task("case-77") as task:
            outcome = task.propose("billing", "refund", {"invoice_id": "4412", …})

    Without a client only the direct way is open; without a target the server makes the dry run.
    """

    def __init__(
        self,
        client: Client | None = None,
        targets: Mapping[str, Target] | None = None,
        store: Store | None = None,
        *,
        patience: Patience | None = None,
        clock: Clock = now,
    ) -> None:
        self.around = Surroundings(
            client.core if client else None,
            dict(targets or {}),
            store or MemoryStore(),
            time.sleep,
            clock,
            patience or Patience(),
        )

    def task(self, task_id: str) -> GuardedTask:
        """Begin a task, or go on with one that the store has."""
        return GuardedTask(Task(self.around, task_id, threading.Lock))

    def mutating[**P, T](
        self, objects: Objects, *, tool: str | None = None
    ) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Mark a function that writes by itself, and the objects that it writes to.

        Plans of every open task that cover one of them are dirty from the moment it is called,
        whatever comes of the call. `objects` may name the function's arguments:
        `"invoice/{invoice_id}"`.
        """

        def decorate(function: Callable[P, T]) -> Callable[P, T]:
            name = tool or function.__name__

            @functools.wraps(function)
            def call(*args: P.args, **kwargs: P.kwargs) -> T:
                written = named(objects, function, args, kwargs)
                for desk in self.around.open_desks():
                    run(desk.about_to_write(written, name))
                try:
                    return function(*args, **kwargs)
                finally:
                    for desk in self.around.open_desks():
                        run(desk.written(written, name))

            return call

        return decorate


class AsyncGuard:
    """The same for the event loop; its verbs and the functions that it marks are awaited."""

    def __init__(
        self,
        client: AsyncClient | None = None,
        targets: Mapping[str, AsyncTarget] | None = None,
        store: Store | None = None,
        *,
        patience: Patience | None = None,
        clock: Clock = now,
    ) -> None:
        self.around = Surroundings(
            client.core if client else None,
            dict(targets or {}),
            store or MemoryStore(),
            asyncio.sleep,
            clock,
            patience or Patience(),
        )

    def task(self, task_id: str) -> AsyncGuardedTask:
        """Begin a task, or go on with one that the store has."""
        return AsyncGuardedTask(Task(self.around, task_id, asyncio.Lock))

    def mutating[**P, T](
        self, objects: Objects, *, tool: str | None = None
    ) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
        """Mark an async function that writes by itself; as `Guard.mutating`."""

        def decorate(function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
            name = tool or str(getattr(function, "__name__", "tool"))

            @functools.wraps(function)
            async def call(*args: P.args, **kwargs: P.kwargs) -> T:
                written = named(objects, function, args, kwargs)
                for desk in self.around.open_desks():
                    await arun(desk.about_to_write(written, name))
                try:
                    return await function(*args, **kwargs)
                finally:
                    for desk in self.around.open_desks():
                        await arun(desk.written(written, name))

            return call

        return decorate


def _tell(ended: TaskEnd, error: BaseException | None) -> None:
    """The end of a `with` block is no place to lose the truth about a commit."""
    if ended.unresolved:
        doubt: Exception = OutcomeUnknown(ended.unresolved[0])
    elif not ended.recorded:
        doubt = Unanswered("The server does not know yet that the task has ended.")
    else:
        return
    if error is None:
        raise doubt
    error.add_note(str(doubt))

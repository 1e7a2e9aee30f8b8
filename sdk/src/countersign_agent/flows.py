"""Logic that is written once and runs in threads as well as on an event loop.

A flow is a generator. Each of its yields is one call on a port: a store, a target, the network, a
clock that waits. The sync shell makes the call; the async shell awaits it, or makes it in a thread
where the port is a plain function. No flow knows which of the two runs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, Concatenate, Protocol, cast, overload


@dataclass(frozen=True, slots=True)
class Step:
    """One call that a flow asks for. The arguments may be secret: `repr` shows none."""

    call: Callable[[], Any]
    awaited: bool

    def __repr__(self) -> str:
        return "Step(…)"


type Flow[T] = Generator[Step, Any, T]


def do[**P, T](
    port: Callable[P, T] | Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> Flow[T]:
    """Call a port, whichever kind it is, and return what it answered."""
    call = functools.partial(port, *args, **kwargs)
    return cast("T", (yield Step(call, inspect.iscoroutinefunction(port))))


type Lock = threading.Lock | asyncio.Lock


def alone[T](lock: Lock, flow: Flow[T]) -> Flow[T]:
    """Run a flow while nobody else holds the lock (a plain one in threads only)."""
    yield from do(lock.acquire)
    try:
        return (yield from flow)
    finally:
        lock.release()


def run[T](flow: Flow[T]) -> T:
    """Run a flow to its end in this thread."""
    with contextlib.closing(flow):
        try:
            step = next(flow)
            while True:
                try:
                    answer = step.call()
                except BaseException as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as end:
            return cast("T", end.value)


async def arun[T](flow: Flow[T]) -> T:
    """Run a flow to its end on the event loop; plain functions run in a thread."""
    with contextlib.closing(flow):
        try:
            step = next(flow)
            while True:
                try:
                    answer = await (step.call() if step.awaited else asyncio.to_thread(step.call))
                except BaseException as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as end:
            return cast("T", end.value)


class Shell(Protocol):
    """Whoever offers flows as methods: `core` is where they are written."""

    @property
    def core(self) -> Any: ...


class sync[**P, T]:
    """A method that runs a flow of the core: `read_plan = sync(Core.read_plan)`."""

    def __init__(self, verb: Callable[Concatenate[Any, P], Flow[T]]) -> None:
        self.verb = verb
        self.__doc__ = verb.__doc__

    @overload
    def __get__(self, shell: None, owner: type) -> sync[P, T]: ...
    @overload
    def __get__(self, shell: Shell, owner: type) -> Callable[P, T]: ...
    def __get__(self, shell: Shell | None, owner: type) -> sync[P, T] | Callable[P, T]:
        if shell is None:
            return self
        core, verb = shell.core, self.verb

        @functools.wraps(verb)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return run(verb(core, *args, **kwargs))

        return method


class awaitable[**P, T]:
    """The same for the event loop: `read_plan = awaitable(Core.read_plan)`."""

    def __init__(self, verb: Callable[Concatenate[Any, P], Flow[T]]) -> None:
        self.verb = verb
        self.__doc__ = verb.__doc__

    @overload
    def __get__(self, shell: None, owner: type) -> awaitable[P, T]: ...
    @overload
    def __get__(self, shell: Shell, owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(
        self, shell: Shell | None, owner: type
    ) -> awaitable[P, T] | Callable[P, Awaitable[T]]:
        if shell is None:
            return self
        core, verb = shell.core, self.verb

        @functools.wraps(verb)
        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return await arun(verb(core, *args, **kwargs))

        return method

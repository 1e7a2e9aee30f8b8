"""A target and an ear: what left the process, every token there ever was, and all that was said."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from countersign_agent import (
    Answer,
    AsyncGuard,
    AsyncHttpTarget,
    CommitCall,
    CountersignError,
    Exchange,
    Guard,
    HttpTarget,
    Secret,
)


class Ear:
    """Collects what a program of an agent could have written somewhere."""

    def __init__(self) -> None:
        self.tokens: list[Secret] = []
        self.said: list[str] = []
        self.commits: list[CommitCall] = []
        self.log = io.StringIO()
        self.handler = logging.StreamHandler(self.log)

    def listen(self) -> None:
        """Every library's log, at its most talkative."""
        logging.getLogger().addHandler(self.handler)
        for name in ("httpx", "httpcore", "countersign_agent", "asyncio"):
            logging.getLogger(name).setLevel(logging.DEBUG)

    def stop(self) -> None:
        logging.getLogger().removeHandler(self.handler)
        for name in ("httpx", "httpcore", "countersign_agent", "asyncio"):
            logging.getLogger(name).setLevel(logging.NOTSET)

    def heard(self, *things: object) -> None:
        """What a program printed, or could have printed."""
        self.said += [f"{thing!r} {thing}" for thing in things]

    def remember(self, exchange: Exchange) -> None:
        """The token of a dry run's answer."""
        self.heard(exchange)
        if isinstance(exchange, Answer) and exchange.status == 200:
            self.tokens.append(Secret(json.loads(exchange.body)["plan_token"]))

    def betrayed(self) -> bool:
        """Whether a token stands in anything that was said."""
        everything = "\n".join([*self.said, self.log.getvalue()])
        return any(token.is_in(everything) for token in self.tokens)

    def refused(self, kind: type[CountersignError], call: Callable[[], object]) -> CountersignError:
        """The error that a call raises; it is printed with every variable of every frame."""
        with pytest.raises(kind) as caught:
            call()
        shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        self.said.append("".join(shown.format()))
        self.heard(caught.value, vars(caught.value))
        return caught.value

    @property
    def keys(self) -> set[str]:
        """The idempotency keys that commits left with."""
        return {call.idempotency_key for call in self.commits}


class Overheard(HttpTarget):
    """Billing, for a guard in threads."""

    ear: Ear

    def dry_run(self, operation: str, inputs: bytes) -> Exchange:
        exchange = super().dry_run(operation, inputs)
        self.ear.remember(exchange)
        return exchange

    def commit(self, call: CommitCall) -> Exchange:
        self.ear.commits.append(call)
        self.ear.heard(call)
        return super().commit(call)


class AsyncOverheard(AsyncHttpTarget):
    """Billing, for a guard on the event loop."""

    ear: Ear

    async def dry_run(self, operation: str, inputs: bytes) -> Exchange:
        exchange = await super().dry_run(operation, inputs)
        self.ear.remember(exchange)
        return exchange

    async def commit(self, call: CommitCall) -> Exchange:
        self.ear.commits.append(call)
        self.ear.heard(call)
        return await super().commit(call)


class Blocking:
    """An object of the event loop as a test in threads uses it: every method is waited for."""

    def __init__(self, inner: Any, runner: asyncio.Runner) -> None:
        self.inner, self.runner = inner, runner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        return self._blocking(found) if callable(found) else found

    def _blocking(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            answer = method(*args, **kwargs)
            if isinstance(answer, Awaitable):
                return self.runner.run(_awaited(answer))
            return Blocking(answer, self.runner) if hasattr(answer, "core") else answer

        return call

    def __enter__(self) -> Any:
        self.runner.run(_awaited(self.inner.__aenter__()))
        return self

    def __exit__(self, *error: Any) -> None:
        self.runner.run(_awaited(self.inner.__aexit__(*error)))

    def mutating(self, objects: Any, *, tool: str | None = None) -> Any:
        """Marks a plain function, as the guard in threads does."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            async def on_the_loop(*args: Any, **kwargs: Any) -> Any:
                return function(*args, **kwargs)

            on_the_loop.__name__ = function.__name__
            on_the_loop.__signature__ = __import__("inspect").signature(function)  # type: ignore[attr-defined]
            marked = self.inner.mutating(objects, tool=tool)(on_the_loop)
            return self._blocking(marked)

        return decorate


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer


__all__ = ["AsyncGuard", "AsyncOverheard", "Blocking", "Ear", "Guard", "Overheard"]

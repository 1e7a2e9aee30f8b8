"""Desks that are told when to look again: one stream each, no thread and no connection (Q-1).

A stream says that something happened, never what: "the queue", "the plan of this intent". The page
then reads the rows as ever, so that a hint which is lost, late or told twice does no harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol
from urllib.parse import parse_qs

from config.one_hop import Message, Receive, Scope, Send, disconnected
from config.waiting import Ear, Waiters
from plans.changes import Wait, intents_of

PATH: Final = "/hints/"
# A page that hears nothing for longer than this takes its stream for dead (static/js/live.js).
BEAT_SECONDS: Final = 15.0
# Whoever was signed out or switched off, or sees other targets now, is found out by then.
CHECK_SECONDS: Final = 30.0
# An approval, its commit and the answer are one hint more, not three.
PAUSE_SECONDS: Final = 0.3
# Each desk asks for two or three pages; so far apart, everybody else's are as fast as before.
SPREAD_MS: Final = 15
MANY_PLANS: Final = 20
# Beyond, a desk asks by itself.
MANY: Final = 5_000
# A page says how old it is; older ones than this have to look in any case.
OLDEST_MS: Final = 10**9
STREAM: Final = b"text/event-stream"


class Reply(Protocol):
    """One complete answer of Django's, not sent yet."""

    start: Message

    @property
    def status(self) -> int: ...
    def forget(self, name: bytes) -> None: ...
    async def send(self, send: Send) -> None: ...


class Asked(Protocol):
    """What the view answered, and the keys that the person may hear."""

    @property
    def answer(self) -> Reply: ...
    @property
    def wait(self) -> Wait: ...


class Live:
    """Every desk of this process. Used from its event loop alone."""

    def __init__(self, waiters: Waiters, ask: Callable[[Scope, bytes], Awaitable[Asked]]) -> None:
        """`ask` runs the request once: the view says who this is, and what they may hear."""
        self._waiters, self._ask = waiters, ask
        self._ends = asyncio.Event()
        self.desks = 0

    def end(self) -> None:
        """Close every stream: a server that stops would wait for them for ever."""
        self._ends.set()

    def end_with_the_process(self) -> None:
        """Be told of the signals that stop the server, before it waits for its clients."""
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._chain(number, loop)

    def _chain(self, number: signal.Signals, loop: asyncio.AbstractEventLoop) -> None:
        before = signal.getsignal(number)
        if not callable(before):
            return

        def stop(caught: int, frame: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                loop.call_soon_threadsafe(self.end)
            before(caught, frame)  # type: ignore[arg-type]  # what Python calls handlers with

        signal.signal(number, stop)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The stream of one desk, until it hangs up, its session ends or the server stops."""
        began = asyncio.get_running_loop().time()
        asked = await self._ask(scope, b"")
        if not asked.wait.keys or self.desks >= MANY or self._ends.is_set():
            await _decline(asked.answer, send)
            return
        self.desks += 1
        gone = asyncio.ensure_future(disconnected(receive))
        ends = asyncio.ensure_future(self._ends.wait())
        try:
            await _begin(asked.answer, send)
            desk = Desk(send, (gone, ends), lambda: SPREAD_MS * self.desks)
            await self._follow(desk, scope, asked.wait.keys, began - _age_ms(scope) / 1000)
            if not gone.done():
                await send({"type": "http.response.body", "body": b""})
        finally:
            self.desks -= 1
            gone.cancel()
            ends.cancel()

    async def _follow(self, desk: Desk, scope: Scope, keys: set[str], since: float) -> None:
        await desk.say("open")
        while keys and not desk.over:
            with self._waiters.ear(keys, since=since) as ear:
                now, since = await self._hear(desk, scope, ear, keys)
            if now and not desk.over:
                # Other targets are seen now: what they hold was never read.
                await desk.hint(set())
            keys = now
        if not desk.over:
            await desk.say("over")

    async def _hear(
        self, desk: Desk, scope: Scope, ear: Ear, keys: set[str]
    ) -> tuple[set[str], float]:
        """Listen until the keys are others: which, and when they were asked for."""
        loop = asyncio.get_running_loop()
        while True:
            await desk.listen(ear, until=loop.time() + CHECK_SECONDS)
            asked_at = loop.time()
            if desk.over:
                return keys, asked_at
            now = (await self._ask(scope, b"")).wait.keys
            if now != keys:
                return now, asked_at


class Desk:
    """One open stream."""

    def __init__(
        self, send: Send, ends: tuple[asyncio.Future[Any], ...], spread: Callable[[], int]
    ) -> None:
        """Any of `ends` closes it; `spread`: over how many milliseconds all desks may ask."""
        self._send, self._ends, self._spread = send, ends, spread

    @property
    def over(self) -> bool:
        return any(end.done() for end in self._ends)

    async def listen(self, ear: Ear, until: float) -> None:
        """Pass on what is heard until then (loop time), with a beat in silence."""
        loop = asyncio.get_running_loop()
        while not self.over and (left := until - loop.time()) > 0:
            if ear.is_set():
                await self.hint(ear.take())
                await self._rest(PAUSE_SECONDS)
                continue
            woken = asyncio.ensure_future(ear.wait())
            await self._rest(min(left, BEAT_SECONDS), woken)
            woken.cancel()
            if not ear.is_set() and not self.over:
                await self.say("beat")

    async def hint(self, heard: set[str]) -> None:
        """Name the intents whose plans something happened to; `*` where that is not known."""
        intents = sorted(intents_of(heard))
        named = intents if 0 < len(intents) <= MANY_PLANS else ["*"]
        await self.say("queue", str(self._spread()), *(("plan", intent) for intent in named))

    async def say(self, event: str, data: str = "", *more: tuple[str, str]) -> None:
        events = ((event, data), *more)
        text = "".join(f"event: {name}\ndata: {words}\n\n" for name, words in events)
        body = {"type": "http.response.body", "body": text.encode(), "more_body": True}
        await self._send(body)

    async def _rest(self, seconds: float, *also: asyncio.Future[Any]) -> None:
        ends = (*self._ends, *also)
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)


async def _begin(answer: Reply, send: Send) -> None:
    answer.forget(b"content-length")
    await send(answer.start)


async def _decline(answer: Reply, send: Send) -> None:
    """Who is signed out is led to the sign-in by the page's next request, not by the stream's."""
    is_stream = answer.status == 200
    if not is_stream and not 300 <= answer.status < 400:
        await answer.send(send)
        return
    for name in (b"content-length", b"content-type", b"location"):
        answer.forget(name)
    await send({**answer.start, "status": 503 if is_stream else 204})
    await send({"type": "http.response.body", "body": b""})


def _age_ms(scope: Scope) -> int:
    """How long ago the page knew everything, by its own clock; unknown: for ever."""
    given = parse_qs(scope["query_string"].decode("latin-1")).get("age", [""])[0]
    is_number = given.isascii() and given.isdigit() and len(given) < 10
    return int(given) if is_number else OLDEST_MS

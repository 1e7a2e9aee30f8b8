"""The server's entry point: bodies counted before anything reads them, and waits without threads.

Django runs a request in one hop into a thread. An answer 304 to a caller that prefers to wait is
held back here, in the event loop, and asked for again when something happened (A-5).
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup(set_prefix=False)

from asgiref.sync import sync_to_async  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.management.base import SystemCheckError  # noqa: E402

from config import live  # noqa: E402
from config.checks import refuse_unsafe_start  # noqa: E402
from config.nudges import listen  # noqa: E402
from config.one_hop import Message, OneHopHandler, Receive, Scope, Send, disconnected  # noqa: E402
from config.renewals import Renewals  # noqa: E402
from config.waiting import Waiters  # noqa: E402
from plans.changes import SCOPE_KEY, Wait  # noqa: E402
from plans.edge import wait_seconds  # noqa: E402
from plans.errors import BodyTooLarge, NotFound, Problem  # noqa: E402
from plans.replies import API, problem_body, problem_headers  # noqa: E402
from plans.strict_json import MAX_BYTES  # noqa: E402

# A sender that is told "too large" in mid-sentence often sees a broken connection instead.
DRAINED_BYTES: Final = 16 * 1024 * 1024
DRAIN_SECONDS: Final = 5.0
# An encoded slash would make another route of a plan ID (BI-47).
_HIDDEN: Final = (b"%2f", b"%5c", b"%00")


@dataclass(slots=True)
class Answer:
    """One complete answer of Django's, not sent yet."""

    start: Message = field(default_factory=dict)
    bodies: list[Message] = field(default_factory=list)

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.start = message
        else:
            self.bodies.append(message)

    @property
    def status(self) -> int:
        return int(self.start["status"])

    def forget(self, *names: bytes) -> None:
        """Leave these headers out from now on."""
        kept = [header for header in self.start["headers"] if header[0].lower() not in names]
        self.start["headers"] = kept

    def header(self, name: bytes) -> str:
        """Its value; empty: there is none."""
        found = (value for key, value in self.start["headers"] if key.lower() == name)
        return next(found, b"").decode("latin-1")

    def unchanged(self) -> "Answer":
        """What would be told to whoever has this representation already."""
        told = Answer({**self.start, "status": 304}, [{"type": "http.response.body", "body": b""}])
        told.forget(b"content-type", b"content-length", b"location", b"x-request-id")
        return told

    async def send(self, send: Send, more_headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        start = {**self.start, "headers": [*self.start["headers"], *more_headers]}
        for message in (start, *self.bodies):
            await send(message)


@dataclass(slots=True)
class Run:
    """An answer and what it would wait for.

    `read_at`: when its reading began; `holds_at`: until when it is known to hold (loop time).
    """

    answer: Answer
    wait: Wait
    read_at: float
    holds_at: float

    @property
    def is_idle(self) -> bool:
        return bool(self.wait.keys) and (self.answer.status == 304 or self.wait.nothing_new)


class Application:
    """What the ASGI server calls."""

    def __init__(
        self,
        handler: Any,
        *,
        waiters: Waiters,
        concurrency: int,
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        """`begin` runs once before the first request; its SystemCheckError stops the server."""
        self.django = handler
        self.begin = begin
        self.waiters = waiters
        self.renewals = Renewals[Run]()
        self.live = live.Live(waiters, self._run)
        # As many as the pool has connections for, with some to spare for pages.
        self.slots = asyncio.Semaphore(concurrency)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            return
        is_api = scope["path"].startswith(API)
        if is_api and any(trick in scope.get("raw_path", b"").lower() for trick in _HIDDEN):
            await _refuse(scope, send, NotFound())
            return
        limit = MAX_BYTES if is_api else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = await _read(scope, receive, limit)
        if body is None:
            return
        if len(body) > limit:
            await _refuse(scope, send, BodyTooLarge(limit=limit))
        elif is_api:
            await self._answer(scope, body, receive, send)
        elif scope["path"] == live.PATH and scope["method"] == "GET":
            await self.live.serve(scope, receive, send)
        else:
            await self.django(scope, _replay(body, receive), send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await sync_to_async(self.begin, thread_sensitive=False)()
                except SystemCheckError as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                self.live.end_with_the_process()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Run the request, and while it has nothing new and its caller waits, run it again."""
        seconds = wait_seconds(_header(scope, b"prefer"))
        if seconds is None:
            told = await self._run(scope, body)
            self._expect(scope, told)
            await told.answer.send(send)
            return
        gone = asyncio.ensure_future(disconnected(receive))
        try:
            run = await self._wait(scope, body, seconds, gone)
        finally:
            gone.cancel()
        if run is not None:
            self._expect(scope, run)
            applied = [(b"preference-applied", f"wait={seconds}".encode())]
            await run.answer.send(send, applied if run.wait.keys else [])
            # Who asks the same again gets the answer to another request.
            run.answer.forget(b"x-request-id")

    async def _wait(
        self, scope: Scope, body: bytes, seconds: int, gone: asyncio.Future[None]
    ) -> Run | None:
        """What there is to say, as soon as it is new or the wait is over; None: nobody is there."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        run = self.renewals.take(scope) if self.waiters.watching else None
        while True:
            run = run or await self._run(scope, body)
            left = until - loop.time()
            if not run.is_idle or left <= 0:
                return run
            changed = await self.waiters.change(
                run.wait.keys, since=run.holds_at, seconds=left, gone=gone
            )
            if gone.done():
                return None
            if not changed:
                run.holds_at = loop.time()
                self.renewals.keep(scope, run)
                return run
            run = None

    def _expect(self, scope: Scope, run: Run) -> None:
        """Whoever was told an ETag mostly waits with it at once: that need not be read again."""
        answer = run.answer
        if run.wait.tag_keys and answer.status in (200, 201) and (tag := answer.header(b"etag")):
            place = answer.header(b"location") if answer.status == 201 else ""
            next_run = Run(answer.unchanged(), Wait(run.wait.tag_keys), run.read_at, run.holds_at)
            self.renewals.expect(scope, next_run, tag=tag, at=place)

    async def _run(self, scope: Scope, body: bytes) -> Run:
        answer, wait = Answer(), Wait()
        async with self.slots:
            began = asyncio.get_running_loop().time()
            await self.django({**scope, SCOPE_KEY: wait}, _replay(body), answer.take)
        return Run(answer, wait, read_at=began, holds_at=began)


def _replay(body: bytes, receive: Receive | None = None) -> Receive:
    """A `receive` that hands out the body once, then what the server says, or nothing more."""
    rest: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        if rest:
            return rest.pop()
        if receive is not None:
            return await receive()
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    return next_message


async def _read(scope: Scope, receive: Receive, limit: int) -> bytes | None:
    """The body, or more than `limit` bytes of one that is too large; None: the client has gone."""
    length = _header(scope, b"content-length")
    if length.isdecimal() and int(length[:18]) > DRAINED_BYTES:
        return bytes(limit + 1)
    parts: list[bytes] = []
    size, deadline = 0, asyncio.get_running_loop().time() + DRAIN_SECONDS
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size <= limit:
            parts.append(part)
        ends = not message.get("more_body", False)
        if ends and size <= limit:
            return b"".join(parts)
        hopeless = size > DRAINED_BYTES or asyncio.get_running_loop().time() > deadline
        if size > limit and (ends or hopeless):
            return bytes(limit + 1)


def _header(scope: Scope, name: bytes) -> str:
    values = [value for key, value in scope["headers"] if key.lower() == name]
    return b", ".join(values).decode("latin-1")


async def _refuse(scope: Scope, send: Send, problem: Problem) -> None:
    """A problem before Django is asked."""
    headers = [(k.lower().encode(), v.encode()) for k, v in problem_headers(problem).items()]
    if problem.status == BodyTooLarge.status:
        headers.append((b"connection", b"close"))
    body = problem_body(problem, scope["path"])
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


application = Application(
    OneHopHandler(settings.REQUEST_THREADS),
    waiters=Waiters(listen=listen),
    concurrency=settings.API_CONCURRENCY,
    begin=refuse_unsafe_start,
)

"""Django behind ASGI in one hop: a whole request, signals to close, in one thread of a fixed few.

The stock handler makes a thread for every request and changes between it and the event loop six
times. Everything of ours is synchronous, so that buys nothing, and costs as much as a query.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from typing import Any

from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

type Message = MutableMapping[str, Any]
type Scope = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]


class Stream:
    """The way of a long answer out of its thread: no faster than the client reads."""

    def __init__(self, receive: Receive, send: Send, loop: asyncio.AbstractEventLoop) -> None:
        self._receive, self._send, self._loop = receive, send, loop
        self._gone: Future[None] | None = None

    def put(self, message: Message) -> None:
        """Send one message. Raises RequestAborted when the client has gone."""
        if self._gone is None:
            self._gone = asyncio.run_coroutine_threadsafe(disconnected(self._receive), self._loop)
        if self._gone.done():
            raise RequestAborted
        asyncio.run_coroutine_threadsafe(self._put(message), self._loop).result()

    async def _put(self, message: Message) -> None:
        await self._send(message)


async def disconnected(receive: Receive) -> None:
    """Done when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


class OneHopHandler(ASGIHandler):
    """Called with a body that was read already, and is its first message (`config.asgi`)."""

    def __init__(self, threads: int) -> None:
        """At most `threads` requests are at work at once; each holds at most one connection."""
        super().__init__()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="request")

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        loop = asyncio.get_running_loop()
        stream = Stream(receive, send, loop)
        for message in await loop.run_in_executor(self._threads, self._serve, scope, body, stream):
            await send(message)

    def _serve(self, scope: Scope, body: bytes, stream: Stream) -> list[Message]:
        """The answer, or what is left of it to send. Runs in a thread from beginning to end."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        request, refusal = self.create_request(scope, BytesIO(body))
        response: Any = refusal if request is None else self.get_response(request)
        response._handler_class = self.__class__
        try:
            start = {
                "type": "http.response.start",
                "status": response.status_code,
                "headers": _headers(response),
            }
            if not response.streaming:
                return [start, {"type": "http.response.body", "body": response.content}]
            stream.put(start)
            for part in response:
                stream.put({"type": "http.response.body", "body": part, "more_body": True})
            return [{"type": "http.response.body"}]
        except RequestAborted:
            return []
        finally:
            response.close()


def _headers(response: HttpResponseBase) -> list[tuple[bytes, bytes]]:
    found = [(name.encode("ascii"), value.encode("latin-1")) for name, value in response.items()]
    cookies = (cookie.OutputString().encode("ascii") for cookie in response.cookies.values())
    return found + [(b"Set-Cookie", cookie) for cookie in cookies]

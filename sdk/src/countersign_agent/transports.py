"""The two ports to the network: one for threads, one for the event loop.

No redirects, cookies, proxies of the environment, `.netrc`, decompression or hidden retries, and
one deadline for all of a call: a server that drips holds nobody.
"""

from __future__ import annotations

import asyncio
import contextvars
import ssl
import time
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

import httpcore
import httpx

from countersign_agent.exchanges import Answer, Exchange, NoAnswer, NotSent, Request

CONNECT_SECONDS: Final = 5.0
KEEP_ALIVE_SECONDS: Final = 30.0
_CONNECTIONS: Final = 100
# Raised before the first byte of a request is written.
_NOT_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
    httpcore.ConnectError,
    httpcore.ConnectTimeout,
    httpcore.PoolTimeout,
    httpcore.UnsupportedProtocol,
)
_SILENT: Final = (httpx.TimeoutException, httpcore.TimeoutException, TimeoutError)
_BROKEN: Final = (
    httpx.TransportError,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    OSError,
)
_deadline: contextvars.ContextVar[float] = contextvars.ContextVar("deadline")


class HttpPort:
    """Sends requests from threads. `transport`: another way to the network, as for tests."""

    def __init__(
        self,
        verify: ssl.SSLContext | bool = True,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.transport = transport or _Transport(verify)

    def send(self, request: Request) -> Exchange:
        """One call, over after `request.seconds` whatever the other side does. Raises nothing."""
        reset = _deadline.set(time.monotonic() + request.seconds)
        try:
            answer = self.transport.handle_request(_prepared(request))
            try:
                return _whole(answer, _read(answer, request.largest))
            finally:
                answer.close()
        except (*_NOT_SENT, *_SILENT, *_BROKEN) as error:
            return _judge(error)
        finally:
            _deadline.reset(reset)

    def close(self) -> None:
        self.transport.close()


class AsyncHttpPort:
    """Sends requests from the event loop."""

    def __init__(
        self,
        verify: ssl.SSLContext | bool = True,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.transport = transport or httpx.AsyncHTTPTransport(
            verify=_tls(verify),
            trust_env=False,
            limits=httpx.Limits(max_connections=None, keepalive_expiry=KEEP_ALIVE_SECONDS),
        )

    async def send(self, request: Request) -> Exchange:
        """One call, over after `request.seconds` whatever the other side does. Raises nothing."""
        try:
            async with asyncio.timeout(request.seconds):
                answer = await self.transport.handle_async_request(_prepared(request))
                try:
                    return _whole(answer, await _aread(answer, request.largest))
                finally:
                    await answer.aclose()
        except (*_NOT_SENT, *_SILENT, *_BROKEN) as error:
            return _judge(error)

    async def close(self) -> None:
        await self.transport.aclose()


def _prepared(request: Request) -> httpx.Request:
    headers = {"Accept-Encoding": "identity", "User-Agent": "countersign-agent"}
    wait = httpx.Timeout(request.seconds, connect=min(CONNECT_SECONDS, request.seconds))
    return httpx.Request(
        request.method,
        request.url,
        headers=headers | dict(request.headers),
        content=request.body,
        extensions={"timeout": wait.as_dict()},
    )


def _read(answer: httpx.Response, largest: int) -> bytes | None:
    parts, size = [], 0
    for part in answer.iter_raw():
        parts.append(part)
        size += len(part)
        if size > largest:
            return None
    return b"".join(parts)


async def _aread(answer: httpx.Response, largest: int) -> bytes | None:
    parts, size = [], 0
    async for part in answer.aiter_raw():
        parts.append(part)
        size += len(part)
        if size > largest:
            return None
    return b"".join(parts)


def _whole(answer: httpx.Response, body: bytes | None) -> Exchange:
    if body is None:
        return NoAnswer("too-large")
    if answer.headers.get("content-encoding", "identity") != "identity":
        return NoAnswer("malformed")
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return Answer(answer.status_code, body, headers)


def _judge(error: Exception) -> NotSent | NoAnswer:
    """The error itself is dropped: it refers to the request, which holds secrets."""
    if isinstance(error, _NOT_SENT):
        return NotSent(type(error).__name__)
    if isinstance(error, _SILENT):
        return NoAnswer("timeout")
    malformed = (httpx.ProtocolError, httpcore.ProtocolError)
    return NoAnswer("malformed" if isinstance(error, malformed) else "broken-off")


def _tls(verify: ssl.SSLContext | bool) -> ssl.SSLContext:
    return verify if isinstance(verify, ssl.SSLContext) else _usual_tls(verify)


@cache
def _usual_tls(verify: bool) -> ssl.SSLContext:
    """One for all ports: to read the certificates takes longer than a call on a near network."""
    return httpx.create_ssl_context(verify, trust_env=False)


# ── Threads have no timeout of their own: every wait for the socket ends with the call ───────────
class _Transport(httpx.BaseTransport):
    """What `httpx.HTTPTransport` does, on a network that knows the deadline of the call."""

    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=_tls(verify),
            max_connections=_CONNECTIONS,
            keepalive_expiry=KEEP_ALIVE_SECONDS,
            network_backend=_Network(),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._pool.handle_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer))

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self.answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self.answer.iter_stream()

    def close(self) -> None:
        self.answer.close()


class _Network(httpcore.SyncBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        stream = super().connect_tcp(host, port, _left(timeout), local_address, socket_options)
        return _Stream(stream)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self.stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self.stream.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.stream.write(buffer, _left(timeout))

    def close(self) -> None:
        self.stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return _Stream(self.stream.start_tls(ssl_context, server_hostname, _left(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self.stream.get_extra_info(info)


def _left(timeout: float | None) -> float:
    """Seconds that this wait may take; TimeoutError when the call's time is over."""
    left = _deadline.get() - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout
    return left if timeout is None else min(left, timeout)

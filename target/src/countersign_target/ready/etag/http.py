"""One request to the API, one answer or the reason for none. No redirects, retries, proxies."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from countersign_target.problems import Problem
from countersign_target.ready.etag.config import ApiSettings
from countersign_target.strict_json import parse_object

MAX_ANSWER: Final = 1 << 20
STRONG: Final = re.compile(r'"[\x21\x23-\x7e\x80-\xff]*"')


class NotSent(Exception):
    """No byte of the request left: nothing can have been carried out."""


class NoAnswer(Exception):
    """The request may have arrived; what became of it is not known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer: its status, headers by lower-case name, and its body."""

    status: int
    headers: Mapping[str, tuple[str, ...]] = field(repr=False)
    body: bytes = field(repr=False)

    def header(self, name: str) -> str | None:
        """A header that came once; None: not at all, or more than once."""
        found = self.headers.get(name, ())
        return found[0].strip() if len(found) == 1 else None

    @property
    def document(self) -> dict[str, Any] | None:
        """The body as a JSON object, read strictly; None when it is anything else."""
        coding = self.headers.get("content-encoding", ("identity",))
        kind = (self.header("content-type") or "").partition(";")[0].strip().lower()
        if coding != ("identity",) or not (kind.endswith("/json") or kind.endswith("+json")):
            return None
        try:
            return parse_object(self.body)
        except Problem:
            return None

    @property
    def etag(self) -> str | None:
        """The strong ETag with its quotes; None for a weak one, a broken one, or none."""
        tag = self.header("etag")
        return tag if tag is not None and STRONG.fullmatch(tag) else None

    @property
    def weak(self) -> bool:
        """Whether there is an ETag that proves too little (RFC 9110, 8.8.1)."""
        return self.etag is None and "etag" in self.headers


class Api:
    """The API that has the state. One connection per request: an old one may be half closed."""

    def __init__(self, settings: ApiSettings) -> None:
        self._settings = settings

    def read(self, path: str) -> Answer:
        """GET the object. NotSent or NoAnswer; to a reader they are the same."""
        return self._exchange("GET", path, {}, None)

    def write(self, method: str, path: str, body: Mapping[str, Any], etag: str, key: str) -> Answer:
        """PATCH or PUT, if the object is still as `etag` says; `key` where the API knows keys."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"If-Match": etag, "Content-Type": kind}
        if key:
            headers[self._settings.idempotency_header] = key
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        return self._exchange(method, path, headers, text.encode())

    def _exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        settings = self._settings
        ends = time.monotonic() + settings.total_timeout
        # The connection is closed, not kept: an idle one may be half dead when the write comes.
        given = {"Accept": "application/json", "Accept-Encoding": "identity", "Connection": "close"}
        connection = self._connected()
        with contextlib.closing(connection), _until(ends, connection):
            try:
                connection.request(
                    method,
                    f"{settings.base_path}{path}",
                    body,
                    {**settings.headers, **given, **headers},
                )
                answer = connection.getresponse()
                raw = answer.read(MAX_ANSWER + 1)
            except (OSError, http.client.HTTPException) as fault:
                raise NoAnswer(_words(fault)) from None
            if len(raw) > MAX_ANSWER or answer.length or time.monotonic() > ends:
                raise NoAnswer("the answer is too long, too slow or cut short")
        return Answer(answer.status, _headers(answer), raw)

    def _connected(self) -> http.client.HTTPConnection:
        settings = self._settings
        connection: http.client.HTTPConnection
        where = (settings.host, settings.port)
        if settings.scheme == "https":
            connection = http.client.HTTPSConnection(
                *where, timeout=settings.connect_timeout, context=_tls()
            )
        else:
            connection = http.client.HTTPConnection(*where, timeout=settings.connect_timeout)
        try:
            connection.connect()
        except (OSError, UnicodeError) as fault:
            raise NotSent(_words(fault)) from None
        connection.sock.settimeout(settings.read_timeout)
        return connection


@contextlib.contextmanager
def _until(ends: float, connection: http.client.HTTPConnection) -> Iterator[None]:
    """Cut the connection when the time is over: a dripping API holds no read timeout to account."""
    held = connection.sock

    def cut() -> None:
        with contextlib.suppress(OSError):
            # Not by the TLS socket's own method: that one trips over a reader in another thread.
            socket.socket.shutdown(held, socket.SHUT_RDWR)

    timer = threading.Timer(max(0, ends - time.monotonic()), cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@cache
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _headers(answer: http.client.HTTPResponse) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, value in answer.getheaders():
        found[name.lower()] = (*found.get(name.lower(), ()), value)
    return found


def _words(fault: Exception) -> str:
    """What happened, in words that hold nothing of what was sent."""
    if isinstance(fault, TimeoutError):
        return "no answer in time"
    if isinstance(fault, http.client.HTTPException):
        return "the answer is no HTTP, or was cut short"
    known = getattr(fault, "verify_message", None) or getattr(fault, "strerror", None)
    return known or type(fault).__name__

"""A target made of a bare socket, which breaks off, drips and lies in every way a real one can.

    with RawTarget("drip") as target:
        exchange(Endpoint(target.base_url, internal=True), call)

`target.play("hang", "ok")` sets what the next connections get; the last mode repeats.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections import deque
from dataclasses import dataclass, field
from email.utils import formatdate
from time import time
from types import TracebackType
from typing import Literal, Self

APPLIED = b'{"plan_id":"plan_1","status":"applied","result":{}}'
CHANGED = (
    b'{"code":"conflict","changed":[{"path":"refunded_cents","planned":0,"current":20000}],'
    b'"plan_created_at":"2025-03-14T09:31:12Z"}'
)
MEGABYTE = 1024 * 1024


def whole(status: str, body: bytes = APPLIED, *headers: str) -> bytes:
    """A well-formed answer with a Content-Length."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers]
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def head(*headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode("latin-1")


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


@dataclass(frozen=True)
class Mode:
    """Read the request or not, write the pieces (seconds apart), and end the connection."""

    pieces: list[bytes] = field(default_factory=list)
    end: Literal["close", "reset", "hang"] = "close"
    reads: bool = True
    pause: float = 0.0


def dripped(data: bytes) -> Mode:
    return Mode([data[i : i + 1] for i in range(len(data))], pause=0.03)


CHUNKED = head("Transfer-Encoding: chunked")
OVERSIZE = b'"' + b"x" * (2 * MEGABYTE) + b'"'

MODES: dict[str, Mode] = {
    "ok": Mode([whole("200 OK")]),
    "ok-dated": Mode([whole("200 OK", APPLIED, f"Date: {formatdate(time(), usegmt=True)}")]),
    "ok-hour-off": Mode([whole("200 OK", APPLIED, f"Date: {formatdate(time() + 3600)}")]),
    "ok-odd-date": Mode([whole("200 OK", APPLIED, "Date: yesterday")]),
    "ok-kept-open": Mode([whole("200 OK")], end="hang"),
    "ok-then-reset": Mode([whole("200 OK")], end="reset"),
    "ok-chunked": Mode([CHUNKED + chunk(APPLIED[:9]) + chunk(APPLIED[9:]) + b"0\r\nX: y\r\n\r\n"]),
    "ok-chunk-extension": Mode([CHUNKED + b"%x;a=b\r\n%b\r\n0\r\n\r\n" % (len(APPLIED), APPLIED)]),
    "ok-without-length": Mode([head() + APPLIED]),
    "ok-after-hints": Mode([head(status="100 Continue"), head(status="103 Hints"), whole("200")]),
    "ok-twice-named": Mode([whole("200 OK", APPLIED, "X-Part: a", "x-part:b ")]),
    "ok-replayed": Mode([whole("200 OK", APPLIED, "Idempotent-Replayed: true")]),
    # The pause lets the caller's connect() finish: a reset inside it is a refused connection.
    "accept-then-reset": Mode([b""], end="reset", reads=False, pause=0.05),
    "accept-then-close": Mode([b""], end="close", reads=False, pause=0.05),
    "read-then-reset": Mode(end="reset"),
    "read-then-close": Mode(),
    "hang": Mode(end="hang"),
    "hang-after-head": Mode([head("Content-Length: 9")], end="hang"),
    "drip-head": dripped(whole("200 OK", b"x" * 1000)),
    "drip-body": Mode([head("Content-Length: 999"), *[b" "] * 999], pause=0.03),
    "drip-hints": Mode([head(status="103 Hints")] * 999, pause=0.03),
    "cut-in-status": Mode([b"HTTP/1.1 20"]),
    "cut-in-header": Mode([b"HTTP/1.1 200 OK\r\nContent-Le"]),
    "cut-after-header-line": Mode([b"HTTP/1.1 200 OK\r\nServer: x\r\n"]),
    "short-content-length": Mode([head(f"Content-Length: {len(APPLIED) + 1}") + APPLIED]),
    "reset-in-body": Mode([head("Content-Length: 99") + APPLIED], end="reset", pause=0.05),
    "cut-chunk": Mode([CHUNKED + b"40\r\n" + APPLIED]),
    "cut-before-last-chunk": Mode([CHUNKED + chunk(APPLIED)]),
    "cut-in-trailer": Mode([CHUNKED + chunk(APPLIED) + b"0\r\n"]),
    "cut-without-length": Mode([head() + APPLIED[:20]]),
    "html-200": Mode([whole("200 OK", b"<html>Sign in</html>")]),
    "empty-200": Mode([whole("200 OK", b"")]),
    "empty-204": Mode([head(status="204 No Content")], end="hang"),
    "redirect-307": Mode([whole("307 Temporary Redirect", b"", "Location: http://127.0.0.1:1/")]),
    "conflict-409": Mode([whole("409 Conflict", CHANGED)]),
    "bare-409": Mode([whole("409 Conflict", b"")]),
    "in-progress-409": Mode([whole("409 Conflict", b'{"code":"in-progress"}')]),
    "late-410": Mode([whole("410 Gone", b'{"code":"plan-expired"}')]),
    "refused-422": Mode([whole("422 Unprocessable Content", b'{"code":"no"}')]),
    "busy-429": Mode([whole("429 Too Many Requests", b"{}", "Retry-After: 2")]),
    "down-503": Mode([whole("503 Service Unavailable", b"")]),
    "early-413": Mode([whole("413 Content Too Large", b"{}")], reads=False),
    "garbage": Mode([b"\x16\x03\x01\x00\xa5 nonsense\r\n\r\n"]),
    "http-0.9": Mode([APPLIED]),
    "http-2": Mode([b"HTTP/2 200 OK\r\n\r\n" + APPLIED]),
    "switching-101": Mode([head(status="101 Switching Protocols")]),
    "big-with-length": Mode([whole("200 OK", OVERSIZE)]),
    "big-length-only": Mode([head("Content-Length: 99999999999")], end="hang"),
    "big-chunked": Mode([CHUNKED, *[chunk(b"x" * 65536)] * 32]),
    "big-without-length": Mode([head(), OVERSIZE]),
    "big-header": Mode([head("X: " + "y" * 70_000) + APPLIED]),
    "many-headers": Mode([head(*["X: y"] * 20_000) + APPLIED]),
    "bare-cr-in-header": Mode([whole("200 OK", APPLIED, "X: a\rIdempotent-Replayed: true")]),
    "bare-lf-in-header": Mode([whole("200 OK", APPLIED, "X: a\nIdempotent-Replayed: true")]),
    "nul-in-header": Mode([whole("200 OK", APPLIED, "X: a\0b")]),
    "space-in-header-name": Mode([whole("200 OK", APPLIED, "Content-Length : 3")]),
    "folded-header": Mode([whole("200 OK", APPLIED, "X: a", " b")]),
    "no-colon-in-header": Mode([whole("200 OK", APPLIED, "nonsense")]),
    "two-lengths": Mode([whole("200 OK", APPLIED, "Content-Length: 3")]),
    "signed-length": Mode([head("Content-Length: +51") + APPLIED]),
    "length-and-chunks": Mode([whole("200 OK", APPLIED, "Transfer-Encoding: chunked")]),
    "unknown-coding": Mode([head("Transfer-Encoding: gzip, chunked") + chunk(APPLIED)]),
    "negative-chunk": Mode([CHUNKED + b"-1\r\n" + APPLIED], end="hang"),
    "hex-prefixed-chunk": Mode([CHUNKED + b"0x33\r\n" + APPLIED + b"\r\n0\r\n\r\n"]),
    "chunk-overrun": Mode([CHUNKED + b"3\r\n" + APPLIED + b"\r\n0\r\n\r\n"]),
}


class RawTarget:
    """Serves `MODES` on a loopback port of its own; `requests` holds what arrived, as bytes."""

    def __init__(self, *modes: str, tls: ssl.SSLContext | None = None) -> None:
        self.tls = tls
        self.requests: list[bytes] = []
        self.connections = 0
        self.over = threading.Event()
        self.play(*modes or ("ok",))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.threads = [threading.Thread(target=self._accept)]

    @property
    def base_url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def play(self, *modes: str) -> None:
        """Give the next connections these modes; the last one stays."""
        self.modes = deque(MODES[mode] for mode in modes)

    def __enter__(self) -> Self:
        self.threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(10)
        self.listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # The listener was shut: the test is over.
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                mode = self.modes.popleft() if len(self.modes) > 1 else self.modes[0]
                thread = threading.Thread(target=self._serve, args=(connection, mode))
                self.threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket, mode: Mode) -> None:
        with contextlib.suppress(OSError), connection:  # Callers that leave early are expected.
            connection.settimeout(10)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls is None:
                self._perform(connection, mode)
                return
            with self.tls.wrap_socket(connection, server_side=True) as secured:
                self._perform(secured, mode)

    def _perform(self, connection: socket.socket, mode: Mode) -> None:
        if mode.reads:
            self.requests.append(read_request(connection))
        perform(connection, mode, self.over)


def perform(connection: socket.socket, mode: Mode, over: threading.Event) -> None:
    """Write the pieces and bring about the end; the caller closes. `over`: the test has ended."""
    for piece in mode.pieces:
        connection.sendall(piece)
        if mode.pause and over.wait(mode.pause):
            return
    if mode.end == "hang":
        over.wait(30)
    if mode.end == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def read_request(connection: socket.socket) -> bytes:
    """The whole request, by its Content-Length; what came until then if the caller leaves."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (piece := connection.recv(65536)):
            return data
        data += piece
    top, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (
            int(line.split(b":")[1])
            for line in top.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        ),
        0,
    )
    while len(body) < length and (piece := connection.recv(65536)):
        body += piece
    return top + b"\r\n\r\n" + body


def refused_port() -> int:
    """A loopback port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port

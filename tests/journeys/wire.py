"""The wire between the app and its target: passes every byte on, and remembers the requests."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as the app sent it; with a credential and a token in it, nobody prints it."""

    method: str
    path: str
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def is_commit(self) -> bool:
        return self.path == "/refund/commit"

    @property
    def members(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


def all_alike(commits: list[Sent]) -> bool:
    """Whether every attempt sent the same bytes. They hold a token: a failure must not show it."""
    return len({commit.body for commit in commits}) == 1


class Wire(ThreadingTCPServer):
    """Listens where the app believes its target to be. One request a connection, as the app does.

    `sent` grows in the order in which requests came.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, port: int) -> None:
        self.target = ("127.0.0.1", port)
        self.sent: list[Sent] = []
        super().__init__(("127.0.0.1", 0), _Passing)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def commits(self, key: str) -> list[Sent]:
        """The commits that carried this idempotency key."""
        return [
            each
            for each in list(self.sent)
            if each.is_commit and each.headers.get("idempotency-key") == key
        ]


class _Passing(StreamRequestHandler):
    server: Wire

    def handle(self) -> None:
        """A side that hangs up ends it, as it would without us."""
        with contextlib.suppress(OSError):
            head = self._head()
            sent = self._request(head)
            self.server.sent.append(sent)
            with socket.create_connection(self.server.target) as target:
                target.sendall(head + sent.body)
                while part := target.recv(65536):
                    self.connection.sendall(part)

    def _head(self) -> bytes:
        lines = []
        while line := self.rfile.readline():
            lines.append(line)
            if line == b"\r\n":
                break
        return b"".join(lines)

    def _request(self, head: bytes) -> Sent:
        first, *lines = head.decode("ascii").strip().split("\r\n")
        method, path, _ = first.split(" ")
        pairs = (line.split(": ", 1) for line in lines)
        headers = {name.lower(): value for name, value in pairs}
        body = self.rfile.read(int(headers.get("content-length", "0")))
        return Sent(method, path, headers, body)


@contextmanager
def listening(port: int) -> Iterator[Wire]:
    """A wire to the target at this port of loopback, until the block ends."""
    with Wire(port) as wire:
        threading.Thread(target=wire.serve_forever, args=[0.1], daemon=True).start()
        try:
            yield wire
        finally:
            wire.shutdown()

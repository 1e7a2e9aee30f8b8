"""A wire to the server on which answers get lost."""

from __future__ import annotations

import contextlib
import socket
import threading

from tests.journeys.wire import Wire, _Passing


class Swallowing(_Passing):
    """Carries every request, and keeps the answers to some of them to itself."""

    server: Losing

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            head = self._head()
            sent = self._request(head)
            with socket.create_connection(self.server.target) as server:
                server.sendall(head[:-2] + b"Connection: close\r\n\r\n" + sent.body)
                answer = b"".join(iter(lambda: server.recv(65536), b""))
            self.server.sent.append(sent)
            if (sent.method, sent.path) == self.server.loses and self.server.times > 0:
                self.server.times -= 1
                self.server.closing.wait(self.server.holds)
                return
            self.connection.sendall(answer)


class Losing(Wire):
    """`times` answers to a kind of request are lost: the connection closes after `holds` s."""

    loses = ("POST", "/api/v1/plans")
    times, holds = 1, 0.0

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.closing = threading.Event()
        self.RequestHandlerClass = Swallowing

"""The counting target on a port of the loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.conformance.counting import AGENT, APP, Ask, Counting


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65_536
    server: _Server

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        who = {APP: "app", AGENT: "agent"}.get(given, "nobody")
        headers = {name.lower(): value for name, value in self.headers.items()}
        ask = Ask(self.command, self.path, headers, body, who)
        self.server.target.say(self, self.server.target.answer(ask))

    do_GET = do_POST = _serve

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    target: Counting

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A check that hangs up is no news."""


@contextmanager
def listening(target: Counting) -> Iterator[str]:
    """The target on a port of the loopback: its base URL."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.target = target
    thread = threading.Thread(target=server.serve_forever, args=[0.02], daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)

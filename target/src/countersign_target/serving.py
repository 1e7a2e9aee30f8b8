"""A server for targets that have none: HTTP/1.1, one thread per connection, standard library."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote

from countersign_target.exchanges import Answer, Request
from countersign_target.problems import Problem

IDLE_SECONDS = 75


class Served(Protocol):
    """What can be served: a `Target`, or what wraps one."""

    name: str
    max_body: int

    def answer(self, request: Request) -> Answer:
        """The answer to any request; never raises."""
        ...


class Server(ThreadingHTTPServer):
    """Listens on one address; port 0 takes a free one, `server_port` says which."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(
        self, address: tuple[str, int], served: Served, handler: type[Handler] | None = None
    ) -> None:
        self.served = served
        super().__init__(address, handler or Handler)

    def server_bind(self) -> None:
        """Bind without the reverse look-up of the host's name, which can take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hung up is no news; anything else is."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection: reads requests, hands them on, writes whole answers."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024  # headers and body leave in one packet
    timeout = IDLE_SECONDS

    def do_GET(self) -> None:
        """Answer a GET; a body that comes with one is not read, so nothing can follow it."""
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            self.close_connection = True
        self.respond(self._request(b""))

    def do_POST(self) -> None:
        """Answer a POST whose length is known and allowed."""
        try:
            body = self._body()
        except Problem as problem:
            # The body was not read, so the connection cannot be used again.
            self.close_connection = True
            return self.refuse(problem)
        self.respond(self._request(body))

    def respond(self, request: Request) -> None:
        """Answer one request; for who needs something between the answer and the socket."""
        self.write(self.server.served.answer(request))

    def _body(self) -> bytes:
        length, most = self.headers.get("Content-Length", ""), self.server.served.max_body
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            raise Problem(411, "length-required", "Send a Content-Length.")
        if len(length) > 9 or int(length) > most:
            raise Problem(413, "too-large", f"A body is at most {most} bytes.")
        return self.rfile.read(int(length))

    def _request(self, body: bytes) -> Request:
        path, _, tail = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(tail, keep_blank_values=True))
        return Request(self.command, unquote(path), headers, body, query)

    def refuse(self, problem: Problem) -> None:
        """Answer with a problem document."""
        self.write(Answer.refusing(problem, self.server.served.name))

    def write(self, answer: Answer) -> None:
        """The whole answer, in one packet where it fits."""
        raw = answer.text.encode()
        self.send_response(answer.status)
        for name, value in answer.whole_headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(raw)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses by itself (a bad request line, another method)."""
        self.close_connection = True
        self.refuse(Problem(code, "bad-request", "This is no request that is served here."))

    def version_string(self) -> str:
        """The `Server` header: a name, no versions."""
        return self.server.served.name

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: a line per request costs more than the request, and says what callers know."""


def serve(
    served: Served,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    handler: type[Handler] | None = None,
    stopping: threading.Event | None = None,
) -> None:
    """Answer requests until SIGTERM, Ctrl-C or `stopping`; prints the address first.

    Only in the main thread: signals arrive there. TLS is the business of a proxy in front.
    """
    stopped = stopping or threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    with Server((host, port), served, handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.1], daemon=True).start()
        address = f"http://{server.server_name}:{server.server_port}"
        print(f"{served.name} listens on {address}", flush=True)
        stopped.wait()
        server.shutdown()

"""HTTP/1.1 with keep-alive, one thread per connection, standard library only."""

import json
import socket
import struct
import sys
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote

from .commits import Answer
from .faults import NoAnswer
from .problems import Problem
from .routes import Billing, Request

MAX_BODY = 64 * 1024
IDLE_SECONDS = 75


class Server(ThreadingHTTPServer):
    """Listens on one address; held sockets block neither other requests nor the shutdown."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], billing: Billing) -> None:
        self.billing = billing
        super().__init__(address, Handler)

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
    """One connection: reads requests, hands them to the routes, writes whole answers."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024  # headers and body leave in one packet
    timeout = IDLE_SECONDS

    def do_GET(self) -> None:
        """Answer a GET; a body that comes with one is not read, so nothing can follow it."""
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            self.close_connection = True
        self._serve(b"")

    def do_POST(self) -> None:
        """Answer a POST with a JSON body."""
        try:
            body = self._body()
        except Problem as problem:
            # The body was not read, so the connection cannot be used again.
            self.close_connection = True
            return self._refuse(problem)
        self._serve(body)

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            raise Problem(411, "length-required", "Send a Content-Length.")
        if len(length) > 9 or int(length) > MAX_BODY:
            raise Problem(413, "too-large", f"A body is at most {MAX_BODY} bytes.")
        if self.headers.get_content_type() != "application/json":
            raise Problem(415, "unsupported-media-type", "Send application/json.")
        if "Content-Encoding" in self.headers:
            raise Problem(415, "unsupported-media-type", "Send the body as it is.")
        return self.rfile.read(int(length))

    def _serve(self, body: bytes) -> None:
        path, _, tail = self.path.partition("?")
        headers = {name.title(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(tail, keep_blank_values=True))
        request = Request(self.command, unquote(path), query, headers, body)
        try:
            answer = self.server.billing.answer(request)
        except Problem as problem:
            self._refuse(problem)
        except NoAnswer as silence:
            self._say_nothing(silence)
        except Exception:
            # The traceback goes to the log; no request body or header is in it.
            traceback.print_exc(limit=-6)
            self._refuse(Problem(500, "internal-error", "This is our fault."))
        else:
            self._write(answer, "application/json")

    def _refuse(self, problem: Problem) -> None:
        text = json.dumps(problem.body(), separators=(",", ":"))
        answer = Answer(problem.status, text, dict(problem.headers))
        self._write(answer, "application/problem+json")

    def _write(self, answer: Answer, content_type: str) -> None:
        raw = answer.text.encode()
        self.send_response(answer.status)
        if answer.status >= 400:
            content_type = "application/problem+json"  # a replayed refusal as well
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("Cache-Control", "no-store")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(raw)

    def _say_nothing(self, silence: NoAnswer) -> None:
        self.server.billing.stopping.wait(silence.seconds)
        if silence.reset:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses by itself (a bad request line, another method)."""
        self.close_connection = True
        self._refuse(Problem(code, "bad-request", "This is no request that is served here."))

    def version_string(self) -> str:
        """The `Server` header: a name, no versions."""
        return "billing"

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: a line per request costs more than the request, and says what callers know."""

"""A mail server on loopback that does what a test says: take, refuse, hang, dribble, hang up."""

from __future__ import annotations

import email
import email.policy
import socket
import socketserver
import threading
import time
from collections import deque
from email.message import EmailMessage
from types import TracebackType
from typing import Any, Self

from approvals.notices.rows import Notice


class _Talk(socketserver.StreamRequestHandler):
    """One conversation; the mode says at which word what goes wrong."""

    server: _Server

    def handle(self) -> None:
        owner, mode = self.server.owner, self.server.owner.next_mode()
        owner.connections += 1
        if mode == "hang":
            owner.stopped.wait()
            return
        if mode == "dribble":
            while not owner.stopped.wait(0.05):
                self.wfile.write(b"2")
            return
        self._say("554 no service" if mode == "closed" else "220 here")
        lines: list[bytes] = []
        while line := self.rfile.readline():
            word = line[:4].upper().strip().decode()
            if word == "DATA":
                if mode == "refuse-data":
                    self._say("554 we do not like it")
                    continue
                self._say("354 go on")
                lines = self._letter()
                if mode == "hang-up":
                    return
                owner.letters.append(b"".join(lines))
                if mode == "hang-after":
                    owner.stopped.wait()
                    return
            self._say(owner.answers.get((mode, word), "221 bye" if word == "QUIT" else "250 ok"))
            if word == "QUIT":
                return

    def _letter(self) -> list[bytes]:
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line)
        return lines

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    owner: MailServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is no error of the test."""


class MailServer:
    """`letters` are the messages as they arrived; modes are taken in turn, the last one stays."""

    answers = {  # noqa: RUF012  # a table
        ("refuse-person", "RCPT"): "550 nobody here",
        ("busy", "RCPT"): "451 later",
        ("refuse-sender", "MAIL"): "550 not you",
    }

    def __init__(self, *modes: str) -> None:
        self.modes = deque(modes or ("take",))
        self.letters: list[bytes] = []
        self.connections = 0
        self.stopped = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Talk)
        self._server.owner = self

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()

    def next_mode(self) -> str:
        return self.modes.popleft() if len(self.modes) > 1 else self.modes[0]

    def plays(self, *modes: str) -> None:
        self.modes = deque(modes)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def mail(self) -> list[EmailMessage]:
        return [
            email.message_from_bytes(each, policy=email.policy.default) for each in self.letters
        ]


def configure(settings: Any, port: int, timeout: float = 0.4) -> None:
    """As config/settings.py does from SMTP_HOST, SMTP_PORT and SMTP_SECURITY=none."""
    settings.SMTP_HOST = "127.0.0.1"
    settings.MAILERS = {
        "default": {
            "BACKEND": "approvals.notices.smtp.EmailBackend",
            "OPTIONS": {"host": "127.0.0.1", "port": port, "timeout": timeout},
        }
    }


def nobody_listens() -> int:
    """A port at which every connection is refused."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def text_of(letter: EmailMessage) -> str:
    """The one part there is: plain text."""
    assert letter.get_content_type() == "text/plain"
    return str(letter.get_content())


def wait_until(done: Any, seconds: float = 20) -> None:
    """Until `done()` says so; the test fails when it never does."""
    ends = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < ends, list(
            Notice.objects.values_list("moment", "status", "tries")
        )
        time.sleep(0.05)

"""Stands between a client of MCP and its server, passes every byte on, and writes all of it down.

As a program (`overheard.py LOG COMMAND …`) for stdin and stdout; `Tap` for TCP.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

type Read = Callable[[int], bytes]


def copy(read: Read, write: Callable[[bytes], object], log: Path) -> None:
    """Until the one side ends or the other is gone."""
    with log.open("ab", buffering=0) as heard, contextlib.suppress(OSError):
        while part := read(65536):
            heard.write(part)
            write(part)


def main(log: str, *command: str) -> int:
    """Run the command; it hears the end of stdin as without us."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        out = child.stdout.fileno()
        back = threading.Thread(
            target=copy,
            args=(lambda size: os.read(out, size), lambda part: os.write(1, part), Path(log)),
        )
        back.start()
        into = child.stdin.fileno()
        copy(lambda size: os.read(0, size), lambda part: os.write(into, part), Path(log))
        child.stdin.close()
        back.join()
        return child.wait()


class Tap(ThreadingTCPServer):
    """Listens in front of a port of loopback."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, log: Path) -> None:
        self.behind, self.log = ("127.0.0.1", port), log
        super().__init__(("127.0.0.1", 0), _Passing)

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Passing(StreamRequestHandler):
    server: Tap

    def handle(self) -> None:
        with contextlib.suppress(OSError), socket.create_connection(self.server.behind) as behind:
            back = threading.Thread(
                target=copy, args=(behind.recv, self.connection.sendall, self.server.log)
            )
            back.start()
            copy(self.connection.recv, behind.sendall, self.server.log)
            with contextlib.suppress(OSError):
                behind.shutdown(socket.SHUT_WR)
            back.join()


@contextmanager
def tapped(port: int, log: Path) -> Iterator[Tap]:
    with Tap(port, log) as tap:
        threading.Thread(target=tap.serve_forever, args=[0.1], daemon=True).start()
        try:
            yield tap
        finally:
            tap.shutdown()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

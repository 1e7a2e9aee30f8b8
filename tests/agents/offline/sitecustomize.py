"""In the path of a program: it may talk to this machine, and to nobody else."""

from __future__ import annotations

import sys
from typing import Any

NEAR = ("127.0.0.1", "::1", "localhost")


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if host not in NEAR:
        # Whoever catches the error shall not hide it.
        print(f"the network was asked for {host!r}", file=sys.stderr, flush=True)
        raise PermissionError(f"{event} {host!r}")


sys.addaudithook(_refuse)

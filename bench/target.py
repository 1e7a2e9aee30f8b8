"""A target that costs next to nothing, in a process of its own: it answers and notes the instant.

A plan is a function of its ID (`plan_<number>_<expiry in ms>`), so nothing is stored but the
moment at which each commit's first byte arrived (`time.monotonic_ns`, one clock per machine).
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any, Final

FINGERPRINT: Final = "sha256:" + "5" * 64


def plan_of(plan_id: str) -> dict[str, Any]:
    """What dry run and read-back say of this plan, without its token."""
    _, number, expiry_ms = plan_id.split("_")
    seconds, ms = divmod(int(expiry_ms), 1000)
    expires_at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{ms:03d}Z"
    return {
        "plan_id": plan_id,
        "expires_at": expires_at,
        "input_fingerprint": FINGERPRINT,
        "actions": [
            {
                "op": "update",
                "target": f"invoice/{number}",
                "field": "refunded_cents",
                "from": 0,
                "to": 48000,
            }
        ],
        "covers": [f"invoice/{number}"],
    }


class Sink(asyncio.Protocol):
    """HTTP/1.1, keep-alive, one request at a time; enough for a client that behaves."""

    arrivals: dict[str, int] = {}  # noqa: RUF012 - one dictionary for all connections, on purpose

    def __init__(self) -> None:
        self.buffer = b""
        self.first_byte = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if not self.buffer:
            self.first_byte = time.monotonic_ns()
        self.buffer += data
        head, separator, rest = self.buffer.partition(b"\r\n\r\n")
        if not separator or len(rest) < _length(head):
            return
        self.buffer = b""
        self._answer(head.decode("latin-1"))

    def _answer(self, head: str) -> None:
        method, path, _ = head.split("\r\n", 1)[0].split(" ")
        if method == "POST":
            plan_id = _header(head, "plan-id")
            self.arrivals.setdefault(plan_id, self.first_byte)
            body: dict[str, Any] = {"plan_id": plan_id, "status": "applied", "result": {"ok": True}}
        elif path == "/_arrivals":
            body = dict(self.arrivals)
        else:
            body = plan_of(path.rsplit("/", 1)[1]) | {"status": "open"}
        text = json.dumps(body).encode()
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(text), text)
        )


def _header(head: str, name: str) -> str:
    for line in head.split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.strip().lower() == name:
            return value.strip()
    return ""


def _length(head: bytes) -> int:
    return int(_header(head.decode("latin-1"), "content-length") or 0)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))

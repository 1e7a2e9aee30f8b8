"""Agents that wait, as little client as possible: one connection each, all in one event loop."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Final

# As different as programs are: nobody's waits end with everybody else's.
SECONDS: Final = (20, 30)


@dataclass(frozen=True, slots=True)
class Place:
    """What to ask for, and how to say what is known already."""

    path: str
    headers: str = ""


class Crowd:
    """Everybody who waits; `told` is the instant at which one of them heard of something new."""

    def __init__(self, port: int, keys: list[str], places: list[Place]) -> None:
        self.port, self.keys, self.places = port, keys, places
        self.waiting: dict[int, asyncio.Task[int]] = {}

    def wait(self, number: int) -> None:
        """Let this agent wait from now on."""
        self.waiting[number] = asyncio.ensure_future(self._until_told(number))

    async def leave(self) -> None:
        """Hang up, all of them."""
        for task in self.waiting.values():
            task.cancel()
        await asyncio.gather(*self.waiting.values(), return_exceptions=True)

    async def told(self, number: int) -> int:
        """`time.monotonic_ns()` of the agent's answer."""
        return await self.waiting[number]

    async def _until_told(self, number: int) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        place = self.places[number]
        head = (
            f"GET {place.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {self.keys[number]}\r\n{place.headers}"
        )
        try:
            while True:
                writer.write(f"{head}Prefer: wait={random.randint(*SECONDS)}\r\n\r\n".encode())
                status, body = await _answer(reader)
                at = time.monotonic_ns()
                if status == 200 and not body.startswith(b'{"items":[]'):
                    return at
                if status not in (200, 304):
                    raise RuntimeError(f"{place.path}: {status} {body[:300]!r}")
        finally:
            writer.close()


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    lines = head.split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
    status = int(lines[0].split()[1])
    length = 0 if status == 304 else int(fields.get("content-length", "0"))
    return status, await reader.readexactly(length)

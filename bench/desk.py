"""Desks that stand open, as little browser as possible: a stream, and the pages it leads to."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import Final

STREAM: Final = "/hints/?age=0"
# What a page asks for when it is told that the queue has changed (static/js/live.js).
LOOKS: Final = ("/review/", "/decisions/")


@dataclass(slots=True)
class Desk:
    """One of them: when it was told of the queue the last time, and when it had read it."""

    told: asyncio.Event = field(default_factory=asyncio.Event)
    told_at: int = 0
    read_at: int = 0


class Room:
    """Every open desk, in one event loop; all of them are Ada's."""

    def __init__(self, port: int, cookie: str) -> None:
        self.port, self.cookie = port, cookie
        self.desks: list[Desk] = []
        self.reads = False
        self._sitting: list[asyncio.Task[None]] = []
        self._reading: set[asyncio.Task[None]] = set()

    async def open(self, count: int) -> None:
        """Let so many more listen; comes back when all of them do."""
        opened = [asyncio.Event() for _ in range(count)]
        for event in opened:
            desk = Desk()
            self.desks.append(desk)
            self._sitting.append(asyncio.ensure_future(self._sit(desk, event)))
        await asyncio.gather(*(event.wait() for event in opened))

    async def close(self) -> None:
        """Hang up, all of them."""
        for task in (*self._sitting, *self._reading):
            task.cancel()
        await asyncio.gather(*self._sitting, *self._reading, return_exceptions=True)
        self.desks, self._sitting, self._reading = [], [], set()

    def forget(self) -> None:
        """From now on only what they are told next counts."""
        for desk in self.desks:
            desk.told.clear()
            desk.told_at = desk.read_at = 0

    async def all_told(self) -> None:
        await asyncio.gather(*(desk.told.wait() for desk in self.desks))

    async def all_read(self) -> None:
        while self._reading:
            await asyncio.gather(*self._reading)

    async def _sit(self, desk: Desk, opened: asyncio.Event) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(self._ask(STREAM, "text/event-stream"))
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise RuntimeError(f"no stream: {head[:300]!r}")
        event = b""
        try:
            while line := await reader.readline():
                if line.startswith(b"event: "):
                    event = line[7:].strip()
                elif line.startswith(b"data: "):
                    self._hear(desk, event, line[6:].strip(), opened)
        finally:
            writer.close()

    def _hear(self, desk: Desk, event: bytes, data: bytes, opened: asyncio.Event) -> None:
        if event == b"open":
            opened.set()
        if event != b"queue":
            return
        if not desk.told.is_set():
            desk.told_at = time.monotonic_ns()
            desk.told.set()
            if self.reads:
                task = asyncio.ensure_future(self._read(desk, int(data or 0) / 1000))
                self._reading.add(task)
                task.add_done_callback(self._reading.discard)

    async def _read(self, desk: Desk, spread: float) -> None:
        await asyncio.sleep(random.uniform(0, spread))
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        for path in LOOKS:
            writer.write(self._ask(path, "text/html"))
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = head.split("content-length: ")[1].split("\r\n")[0]
            await reader.readexactly(int(length))
        writer.close()
        desk.read_at = time.monotonic_ns()

    def _ask(self, path: str, accepts: str) -> bytes:
        lines = (
            f"GET {path} HTTP/1.1",
            "Host: 127.0.0.1",
            f"Cookie: {self.cookie}",
            f"Accept: {accepts}",
            "HX-Request: true",
        )
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

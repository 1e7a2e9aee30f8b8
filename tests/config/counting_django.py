"""A Django that only counts, calls to the entry point before it, and a trail of events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from config.asgi import Application
from config.waiting import Waiters
from plans.changes import SCOPE_KEY, Look

PLAN = "/api/v1/plans/billing/pl_1"


class Django:
    """Answers 304 for a key until told otherwise; keeps what it was given."""

    def __init__(self, *, status: int = 304, key: str | None = "intent:1") -> None:
        self.status = status
        self.key = key
        self.runs = 0
        self.at_once = self.most_at_once = 0
        self.bodies: list[bytes] = []
        self.headers: list[tuple[bytes, bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.runs += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.bodies.append((await receive())["body"])
        await asyncio.sleep(0.001)
        if self.key and SCOPE_KEY in scope:
            scope[SCOPE_KEY].keys.add(self.key)
            scope[SCOPE_KEY].tag_keys.add(self.key)
        headers = list(self.headers)
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"answer"})
        self.at_once -= 1


class Call:
    """One request to the application, and what it answered."""

    def __init__(self, *chunks: bytes, path: str = PLAN, raw: str = "", **headers: str) -> None:
        self.scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": b"",
            "raw_path": (raw or path).encode(),
            "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()],
        }
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        chunks = chunks or (b"",)
        for number, chunk in enumerate(chunks, start=1):
            more = number < len(chunks)
            self.incoming.put_nowait({"type": "http.request", "body": chunk, "more_body": more})
        self.sent: list[dict[str, Any]] = []

    def hang_up(self) -> None:
        self.incoming.put_nowait({"type": "http.disconnect"})

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def made_to(self, application: Application) -> Call:
        await application(self.scope, self.incoming.get, self.send)
        return self

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])


class Trail:
    """Nothing happens until `events` has some."""

    def __init__(self) -> None:
        self.events: dict[int, tuple[str, ...]] = {}

    def look(self, since: int | None) -> Look:
        return Look(0, {} if since is None else dict(self.events))


def run(django: Django, story: Callable[[Application, Trail], Awaitable[None]]) -> None:
    async def play() -> None:
        trail = Trail()
        waiters = Waiters(trail.look, lambda: None)
        await asyncio.wait_for(
            story(Application(django, waiters=waiters, concurrency=4), trail), 20
        )

    asyncio.run(play())

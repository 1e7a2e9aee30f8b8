"""Programs of an agent, in threads and on the event loop, and the stores that they keep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from countersign_agent import (
    AsyncGuard,
    Guard,
    JsonFileStore,
    MemoryStore,
    Patience,
    Promises,
    SqliteStore,
    Store,
)
from countersign_agent.instants import now
from tests.demo.billing_process import APP_TOKEN
from tests.sdk.overhearing import AsyncOverheard, Blocking, Ear, Overheard

PROMISES = Promises(
    enforces_expiry=True, consumed_plans_readable=True, key_retention_seconds=86_400
)
QUICK = Patience(commit=20, retry_delays=(0.1, 0.2, 0.4), read_every=0.2, ending=3)


STORES: dict[str, Callable[[Path], Store]] = {
    "json": lambda folder: JsonFileStore(folder / "state.json"),
    "sqlite": lambda folder: SqliteStore(folder / "state.db"),
}


class Program:
    """An agent's program that uses the direct way, in threads or on the event loop."""

    def __init__(self, kind: str, ear: Ear, url: str, runner: asyncio.Runner) -> None:
        self.kind, self.ear, self.url, self.runner = kind, ear, url, runner
        self.later = timedelta(0)
        self.closing: list[Any] = []

    def guard(self, store: Store | None = None, *, seconds: float = 5, lives: int = 600) -> Any:
        """`seconds`: what one commit may take; `lives`: what plans live, in seconds."""
        options: dict[str, Any] = {
            "promises": PROMISES,
            "seconds": seconds,
            "headers": {"Plan-Seconds": str(lives)},
        }
        at, patience = (lambda: now() + self.later), QUICK
        store = store or MemoryStore()
        if self.kind == "threads":
            target = Overheard(self.url, APP_TOKEN, **options)
            target.ear = self.ear
            self.closing.append(target.close)
            return Guard(None, {"billing": target}, store, patience=patience, clock=at)
        on_loop = AsyncOverheard(self.url, APP_TOKEN, **options)
        on_loop.ear = self.ear
        self.closing.append(lambda: self.runner.run(on_loop.close()))
        guard = AsyncGuard(None, {"billing": on_loop}, store, patience=patience, clock=at)
        return Blocking(guard, self.runner)

    def time_passes(self, seconds: float) -> None:
        """By the guard's clock."""
        self.later += timedelta(seconds=seconds)

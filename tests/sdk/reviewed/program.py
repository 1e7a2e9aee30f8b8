"""A program of an agent whose plans people decide about, in threads and on the event loop."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta
from typing import Any

import pytest

from countersign_agent import AsyncClient, AsyncGuard, Client, Guard, Store
from countersign_agent.instants import now
from demo.credentials import AGENT, TARGET
from tests.journeys.product import Product
from tests.sdk.overhearing import AsyncOverheard, Blocking, Ear, Overheard
from tests.sdk.programs import QUICK

_numbers = itertools.count(1)


class Reviewed:
    """A program whose plans people decide about; each test is a task of its own."""

    def __init__(self, kind: str, ear: Ear, product: Product, runner: asyncio.Runner) -> None:
        self.kind, self.ear, self.product, self.runner = kind, ear, product, runner
        self.task_id = f"task-{next(_numbers)}"
        self.later = timedelta(0)
        self.closing: list[Any] = []
        raw = product.credentials.raw
        self.key = raw["agents"][AGENT]["api_key"]
        self.agent_token = raw["targets"][TARGET]["agent_token"]

    def client(self, base_url: str | None = None, **options: Any) -> Any:
        where = (base_url or self.product.credentials.base_url, self.key)
        return self._closed(
            Client(*where, **options) if self.kind == "threads" else AsyncClient(*where, **options)
        )

    def guard(self, store: Store | None = None, *, targets: bool = True, **client: Any) -> Any:
        known = {TARGET: self.target(), "desk": self.target()} if targets else {}
        options: Any = {"patience": QUICK, "clock": lambda: now() + self.later}
        if self.kind == "threads":
            return Guard(self.client(**client), known, store, **options)
        inner = self.client(**client).inner
        return Blocking(AsyncGuard(inner, known, store, **options), self.runner)

    def target(self) -> Any:
        where = (self.product.credentials.billing_url, self.agent_token)
        target: Any = (Overheard if self.kind == "threads" else AsyncOverheard)(*where)
        target.ear = self.ear
        self._closed(target)
        return target

    def _closed(self, made: Any) -> Any:
        if self.kind != "threads":
            made = Blocking(made, self.runner)
        self.closing.append(made.close)
        return made


in_both = pytest.mark.parametrize("program", ["threads", "event loop"], indirect=True)

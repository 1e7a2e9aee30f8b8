"""`Client` and `AsyncClient`: the REST interface for threads and for the event loop."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from typing import Self

import httpx

from countersign_agent.api import Api
from countersign_agent.calling import Caller
from countersign_agent.flows import awaitable, sync
from countersign_agent.secret import Secret
from countersign_agent.transports import AsyncHttpPort, HttpPort


class Client:
    """A Countersign server, for one agent's API key. Every method may be called from any thread.

    `seconds` is the most that one call takes, retries included, beside what it asks to wait.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        seconds: float = 60.0,
        verify: ssl.SSLContext | bool = True,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._port = HttpPort(verify, transport)
        self.core = Api(Caller(_base(base_url), _key(api_key), self._port, time.sleep, seconds))

    submit_plan = sync(Api.submit_plan)
    read_plan = sync(Api.read_plan)
    wait_for_plan = sync(Api.wait_for_plan)
    list_plans = sync(Api.list_plans)
    abandon_plan = sync(Api.abandon_plan)
    add_evidence = sync(Api.add_evidence)
    open_intent = sync(Api.open_intent)
    read_intent = sync(Api.read_intent)
    wait_for_intent = sync(Api.wait_for_intent)
    report_writes = sync(Api.report_writes)
    end_task = sync(Api.end_task)
    claim_replan = sync(Api.claim_replan)
    fail_replan = sync(Api.fail_replan)
    read_events = sync(Api.read_events)

    def close(self) -> None:
        """Close its connections."""
        self._port.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncClient:
    """The same for the event loop: every method is awaited."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        seconds: float = 60.0,
        verify: ssl.SSLContext | bool = True,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._port = AsyncHttpPort(verify, transport)
        self.core = Api(Caller(_base(base_url), _key(api_key), self._port, asyncio.sleep, seconds))

    submit_plan = awaitable(Api.submit_plan)
    read_plan = awaitable(Api.read_plan)
    wait_for_plan = awaitable(Api.wait_for_plan)
    list_plans = awaitable(Api.list_plans)
    abandon_plan = awaitable(Api.abandon_plan)
    add_evidence = awaitable(Api.add_evidence)
    open_intent = awaitable(Api.open_intent)
    read_intent = awaitable(Api.read_intent)
    wait_for_intent = awaitable(Api.wait_for_intent)
    report_writes = awaitable(Api.report_writes)
    end_task = awaitable(Api.end_task)
    claim_replan = awaitable(Api.claim_replan)
    fail_replan = awaitable(Api.fail_replan)
    read_events = awaitable(Api.read_events)

    async def close(self) -> None:
        """Close its connections."""
        await self._port.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def _base(url: str) -> str:
    """An origin, perhaps with a path before `/api/v1`. A user name in it would be logged."""
    parts = httpx.URL(url)
    if parts.scheme not in ("http", "https") or not parts.host or parts.userinfo or parts.query:
        raise ValueError("the address of a server is http(s)://host[:port][/path]")
    return url.rstrip("/")


def _key(api_key: str) -> Secret:
    if not re.fullmatch(r"[\x21-\x7e]+", api_key, re.ASCII):
        raise ValueError("an API key is printable ASCII without spaces")
    return Secret(api_key)

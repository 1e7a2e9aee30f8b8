"""People and programs that do not mind when the server is away: they try again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

import httpx

from demo.credentials import Credentials
from tests.journeys.people import Agent, Billing, Draft, Person, Plan
from tests.journeys.product import PATIENCE

LAST: Final = "nothing-comes-after-this"


class Stubborn(httpx.HTTPTransport):
    """Sends a request again until somebody answers it to the end."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                answer = super().handle_request(request)
                answer.read()
            except httpx.TransportError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            else:
                return answer


class Worker(Agent):
    """An agent's program that does not mind when the server is away."""

    def __init__(self, credentials: Credentials) -> None:
        super().__init__(credentials)
        with self.app as known:
            base_url, headers, timeout = known.base_url, known.headers, known.timeout
        transport = Stubborn()
        self.app = httpx.Client(
            base_url=base_url, headers=headers, timeout=timeout, transport=transport
        )

    def wait(self, plan: Plan, reached: Callable[[Plan], bool], seconds: float = 100.0) -> Plan:
        """Shorter than the test's own patience, so that a story that stands still says where."""
        return super().wait(plan, reached, seconds)

    def submit(self, draft: Draft, **members: Any) -> Plan:
        """What was stored before the answer got lost is found (A-3)."""
        body = self._wish(draft.inputs) | {"plan": draft.plan} | members
        answer = self.app.post("/plans", json=body)
        assert answer.status_code in (200, 201), answer.text
        return dict(answer.json())

    def say(self, path: str, **body: Any) -> Plan:
        answer = self.app.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


class Reader(threading.Thread):
    """Another program of the same agent, which reads its feed by cursor, in small pages."""

    def __init__(self, credentials: Credentials) -> None:
        super().__init__(daemon=True)
        self.app = credentials.as_agent()
        self.told: list[dict[str, Any]] = []
        self.cuts = 0

    def run(self) -> None:
        cursor: dict[str, str] = {}
        while not self.told or self.told[-1]["task_id"] != LAST:
            query = {"limit": "3"} | cursor
            try:
                answer = self.app.get("/events", params=query, headers={"Prefer": "wait=10"})
            except httpx.TransportError:
                self.cuts += 1
                time.sleep(0.1)
                continue
            page = answer.raise_for_status().json()
            self.told += page["items"]
            cursor = {"after": page["next"]}


class Desk:
    """Ada decides for all of them, one after the other."""

    def __init__(self, ada: Person, billing: Billing) -> None:
        self.ada, self.billing = ada, billing
        self.lock = threading.Lock()

    def decide(self, agent: Worker, plan: Plan, verdict: str) -> None:
        """Until it was taken: an answer that got lost is found in the plan's status."""
        while agent.read(plan)["status"] == "pending":
            try:
                with self.lock:
                    answer = self.ada.decide(plan, verdict, "" if verdict == "approve" else "less")
                assert answer.status_code == httpx.codes.SEE_OTHER, answer.text
            except httpx.TransportError:
                time.sleep(0.1)

"""Starts a served shop, and speaks to it as app and as agent."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from tests.target.shop import AGENT_TOKEN, APP_TOKEN

ROOT = Path(__file__).resolve().parents[2]


class Shop:
    """The shop over HTTP."""

    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        self.url = url
        self.process = process
        self.app, self.agent = self._client(APP_TOKEN), self._client(AGENT_TOKEN)

    def _client(self, token: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=20, trust_env=False)

    def put(self, stock: int = 10, item: str | None = None) -> str:
        item = item or f"item-{uuid4().hex[:8]}"
        answer = self.app.post("/_put", json={"item": item, "stock": stock})
        assert answer.status_code == 200, answer.text
        return item

    def plan(self, take: int = 3, **more: Any) -> dict[str, Any]:
        inputs = {"item": more.pop("item", None) or self.put(), "take": take, **more}
        answer = self.agent.post("/take/dry_run", json=inputs)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def commit(self, plan: dict[str, Any], key: str | None = None, **body: str) -> httpx.Response:
        names = ("plan_token", "input_fingerprint")
        sent = {name: plan[name] for name in names} | body
        headers = {"Idempotency-Key": key or f"key-{uuid4()}"}
        return self.app.post("/take/commit", json=sent, headers=headers)

    def read(self, plan: dict[str, Any]) -> dict[str, Any]:
        answer = self.agent.get(f"/plans/{plan['plan_id']}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def taken(self, plan: dict[str, Any]) -> list[int]:
        answer = self.app.get(f"/_taken/{plan['plan_id']}")
        assert answer.status_code == 200, answer.text
        return list(answer.json())


@contextmanager
def running(kind: str, address: str, module: str = "tests.target.served") -> Iterator[Shop]:
    """A process of its own, killed at the end of the block."""
    command = [sys.executable, "-m", module, kind, address]
    places = os.pathsep.join([str(ROOT), str(ROOT / "target" / "src")])
    environment = os.environ | {"PYTHONPATH": places}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        shop = Shop(process.stdout.readline().strip().rpartition(" ")[2], process)
        try:
            assert shop.url.startswith("http"), "it did not start"
            yield shop
        finally:
            shop.app.close()
            shop.agent.close()
            process.kill()

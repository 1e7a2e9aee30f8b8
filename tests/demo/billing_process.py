"""Billing as it runs in the demo, a process of its own, and words for what tests do to it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import httpx
import psycopg

ROOT = Path(__file__).resolve().parents[2]
APP_TOKEN, AGENT_TOKEN = "billing-app-token", "billing-agent-token"


class Target:
    """Billing seen over HTTP, by the app (`app`) and by the agent (`agent`)."""

    def __init__(self, url: str, database_url: str, process: subprocess.Popen[str]) -> None:
        self.url = url
        self.database_url = database_url
        self.process = process
        self.app = self._client(APP_TOKEN)
        self.agent = self._client(AGENT_TOKEN)

    def _client(self, token: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"}
        limits = httpx.Limits(max_connections=40)
        return httpx.Client(
            base_url=self.url, headers=headers, timeout=20, trust_env=False, limits=limits
        )

    def close(self) -> None:
        self.app.close()
        self.agent.close()

    def new_invoice(self, amount_cents: int = 48000) -> str:
        answer = self.app.post("/invoices", json={"amount_cents": amount_cents})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["invoice_id"])

    def invoice(self, invoice_id: str) -> dict[str, Any]:
        return dict(self.app.get(f"/invoices/{invoice_id}").json())

    def dry_run(self, invoice_id: str, amount_cents: int = 48000, **headers: str) -> httpx.Response:
        inputs = {"amount_cents": amount_cents, "invoice_id": invoice_id}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.agent.post("/refund/dry_run", json=inputs, headers=named)

    def plan(self, amount_cents: int = 48000) -> dict[str, Any]:
        answer = self.dry_run(self.new_invoice(amount_cents), amount_cents)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def commit(
        self, plan: dict[str, Any], key: str | None = None, client: httpx.Client | None = None
    ) -> httpx.Response:
        body = {name: plan[name] for name in ("plan_token", "input_fingerprint")}
        headers = {"Idempotency-Key": key or f"idem_{uuid4()}"}
        return (client or self.app).post("/refund/commit", json=body, headers=headers)

    def read(self, plan: dict[str, Any]) -> dict[str, Any]:
        answer = self.app.get(f"/plans/{plan['plan_id']}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def move(self, plan: dict[str, Any], amount_cents: int) -> None:
        path = f"/invoices/{number_of(plan)}/external_refund"
        assert self.app.post(path, json={"amount_cents": amount_cents}).status_code == 200

    def arm(self, mode: str, times: int = 1, seconds: float = 0) -> None:
        order = {"commit": mode, "times": times, "seconds": seconds}
        assert self.app.post("/_faults", json=order).status_code == 200

    def effects(self, plan: dict[str, Any]) -> list[dict[str, Any]]:
        items = self.app.get("/_ledger").json()["items"]
        return [effect for effect in items if effect["plan_id"] == plan["plan_id"]]

    def execute(self, statement: str, plan: dict[str, Any]) -> None:
        """Bend the target's own rows, for what only time can do."""
        with psycopg.connect(self.database_url) as connection:
            connection.execute(statement.encode(), [plan["plan_id"]])

    def let_expire(self, plan: dict[str, Any]) -> None:
        hour = "interval '1 hour'"
        columns = f"created_at = created_at - {hour}, expires_at = expires_at - {hour}"
        self.execute(f"UPDATE plans SET {columns} WHERE plan_id = %s", plan)


def number_of(plan: dict[str, Any]) -> str:
    """The invoice that a plan covers."""
    return str(plan["covers"][0]).removeprefix("invoice/")


@contextmanager
def running(database_url: str) -> Iterator[Target]:
    """`python -m demo.billing` on a free port, until the block ends."""
    environment = os.environ | {
        "BILLING_PORT": "0",
        "BILLING_DATABASE_URL": database_url,
        "BILLING_TOKEN": APP_TOKEN,
        "BILLING_AGENT_TOKEN": AGENT_TOKEN,
    }
    command = [sys.executable, "-m", "demo.billing"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        target = Target(_address(process.stdout), database_url, process)
        try:
            yield target
        finally:
            target.close()
            process.send_signal(signal.SIGTERM)


def _address(output: IO[str] | None) -> str:
    first = output.readline() if output else ""
    assert "http://" in first, "billing did not start"
    return first.strip().rpartition(" ")[2]

"""Ready targets and the API behind one, each in a process of its own, and words for their tests."""

from __future__ import annotations

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
from psycopg import conninfo, sql
from psycopg.rows import DictRow

from config import embedded

ROOT = Path(__file__).resolve().parents[3]
APP_TOKEN, AGENT_TOKEN = "ready-app-token", "ready-agent-token"


class Ready:
    """A ready target seen over HTTP, by the app (`app`) and by the agent (`agent`)."""

    def __init__(self, module: str, file: Path, operation: str, **environment: str) -> None:
        self.command = [sys.executable, "-m", f"countersign_target.ready.{module}", str(file)]
        self.environment = os.environ | {
            "PYTHONPATH": str(ROOT / "target" / "src"),
            "APP_TOKEN": APP_TOKEN,
            "AGENT_TOKEN": AGENT_TOKEN,
            **environment,
        }
        self.operation = operation
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command, cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, text=True
        )
        self.url = address(self.process.stdout)
        self.app = self._client(APP_TOKEN)
        self.agent = self._client(AGENT_TOKEN)

    def __enter__(self) -> Ready:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Nothing is left of it, however the test ended; one that did not stop well is told."""
        if self.process.poll() is None:
            code = self.stop()
            assert error or code == 0

    def _client(self, token: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=20, trust_env=False)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it, and wait until it is gone."""
        self.app.close()
        self.agent.close()
        self.process.send_signal(number)
        code = self.process.wait(20)
        if self.process.stdout:
            self.process.stdout.close()
        return code

    def doing(self, operation: str) -> Ready:
        """The same target; from here on this is what it is asked for."""
        self.operation = operation
        return self

    def dry_run(self, **inputs: Any) -> httpx.Response:
        return self.agent.post(f"/{self.operation}/dry_run", json=inputs)

    def plan(self, **inputs: Any) -> dict[str, Any]:
        answer = self.dry_run(**inputs)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def commit(
        self, plan: dict[str, Any], key: str = "", client: httpx.Client | None = None
    ) -> httpx.Response:
        body = {name: plan[name] for name in ("plan_token", "input_fingerprint")}
        headers = {"Idempotency-Key": key or f"idem_{uuid4()}"}
        return (client or self.app).post(f"/{self.operation}/commit", json=body, headers=headers)

    def read(self, plan: dict[str, Any]) -> dict[str, Any]:
        answer = self.app.get(f"/plans/{plan['plan_id']}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


def address(output: IO[str] | None) -> str:
    """The last word of the first line that a process prints."""
    first = output.readline() if output else ""
    assert "http://" in first, f"it did not start: {first}"
    return first.strip().rpartition(" ")[2]


class Accounts:
    """The tables as their owner sees them."""

    def __init__(self, connection: psycopg.Connection[DictRow]) -> None:
        self.connection = connection

    def new(self, seats: int = 0, **columns: Any) -> int:
        """An account that nobody else touches."""
        row = self.run(
            "INSERT INTO accounts (holder, note, credit) VALUES (%s, %s, %s) RETURNING id",
            columns.get("holder", f"holder-{uuid4().hex[:8]}"),
            columns.get("note", ""),
            columns.get("credit", "10.50"),
        )
        for number in range(1, seats + 1):
            self.run("INSERT INTO seats VALUES (%s, %s, 'Ada')", row["id"], number)
        return int(row["id"])

    def run(self, statement: str, *values: Any) -> dict[str, Any]:
        """One statement; its first row."""
        cursor = self.connection.execute(statement.encode(), values)
        return (cursor.fetchone() if cursor.description else None) or {}

    def now(self, number: int) -> dict[str, Any]:
        return self.run("SELECT * FROM accounts WHERE id = %s", number)

    def writes(self, number: int) -> int:
        """How often the row was written, by what the trigger noted."""
        return int(
            self.run("SELECT count(*) AS n FROM account_log WHERE account_id = %s", number)["n"]
        )


class Customers:
    """The API as its owner sees it: makes customers, moves them, orders faults, has the ledger."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx.Client(base_url=url, timeout=20, trust_env=False)
        self.token = "customers-api-token"

    def new(self, **document: Any) -> str:
        """A customer that nobody else touches."""
        number = uuid4().hex[:12]
        usual = {
            "id": number,
            "email": "ada@example.com",
            "credit_cents": 1000,
            "limit_cents": 5000,
        }
        address = {"address": {"city": "Oslo", "street": "Gate 1"}, "updated_at": "t1"}
        usual |= {"changed_by": "nobody"}
        self.move(number, **(usual | address | document))
        return number

    def move(self, number: str, **patch: Any) -> None:
        """Another writer."""
        self._post("/_move", {"id": number, "patch": patch})

    def delete(self, number: str) -> None:
        self._post("/_delete", {"id": number})

    def arm(self, **faults: Any) -> None:
        """How the next read and the next write go wrong."""
        self._post("/_faults", faults)

    def _post(self, path: str, body: dict[str, Any]) -> None:
        assert self.client.post(path, json=body).status_code == 200

    def now(self, number: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}"}
        return dict(self.client.get(f"/customers/{number}", headers=headers).json())

    def writes(self, number: str) -> list[dict[str, Any]]:
        """What was really carried out."""
        items = self.client.get("/_ledger").json()["items"]
        return [item for item in items if item["id"] == number]


@contextmanager
def customers() -> Iterator[Customers]:
    """The API on a free port, until the block ends."""
    script = Path(__file__).with_name("customers_api.py")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as run:
        world = Customers(address(run.stdout))
        try:
            yield world
        finally:
            world.client.close()
            run.kill()


@contextmanager
def new_database() -> Iterator[str]:
    """An empty database on the tests' own server; its address."""
    named = os.environ.get("DATABASE_URL") or embedded.Cluster().urls()["postgres"]
    server = conninfo.make_conninfo(named, dbname="postgres")
    name = f"test_countersign_accounts_{uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield conninfo.make_conninfo(server, dbname=name)
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
            connection.execute(drop.format(sql.Identifier(name)))

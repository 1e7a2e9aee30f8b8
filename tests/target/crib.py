"""A target in this process: calls without a socket, and a clock that can be bent."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from countersign_target import Answer, Credentials, Operation, Request, Target
from countersign_target.sql import PLANS

APP, AGENT = "app-token-of-the-crib", "agent-token-of-the-crib"


class Crib:
    """One operation, `change`, and words for what is done with it. `mark`: `?` or `%s`."""

    def __init__(self, store: Any, mark: str, *operations: Operation, **options: Any) -> None:
        self.store, self.mark = store, mark
        identity = Credentials(app=APP, agent=AGENT)
        self.target = Target("crib", store, identity, operations, **options)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        known = {"authorization": f"Bearer {APP}", "content-type": "application/json"}
        raw = b"" if body is None else json.dumps(body).encode()
        sent = known | {name.replace("_", "-"): text for name, text in headers.items()}
        return self.target.answer(Request(method, path, sent, raw))

    def dry_run(self, **inputs: Any) -> Answer:
        return self.ask("POST", "/change/dry_run", inputs)

    def plan(self, **inputs: Any) -> dict[str, Any]:
        answer = self.dry_run(**inputs)
        assert answer.status == 200, answer.text
        return dict(json.loads(answer.text))

    def commit(self, plan: dict[str, Any], key: str | None = None) -> Answer:
        body = {name: plan[name] for name in ("plan_token", "input_fingerprint")}
        return self.ask("POST", "/change/commit", body, idempotency_key=key or f"key-{uuid4()}")

    def status(self, plan: dict[str, Any]) -> str:
        answer = self.ask("GET", f"/plans/{plan['plan_id']}")
        return str(json.loads(answer.text)["status"])

    def run(self, statement: str, *values: Any) -> list[Any]:
        with self.store.transaction() as transaction:
            cursor = transaction.connection.cursor()
            cursor.execute(statement.replace("?", self.mark), values)
            rows = cursor.fetchall() if cursor.description else []
        return [tuple(row.values() if isinstance(row, dict) else row) for row in rows]

    def bend(self, column: str, moment: str, plan: dict[str, Any]) -> None:
        """Set one moment of a plan's row, for what only time can do."""
        statement = f"UPDATE {PLANS} SET {column} = ? WHERE plan_id = ?"
        self.run(statement, moment, plan["plan_id"])

    def let_expire(self, plan: dict[str, Any]) -> None:
        self.bend("created_at", "2020-01-01T00:00:00.000Z", plan)
        self.bend("expires_at", "2020-01-01T00:10:00.000Z", plan)


def code(answer: Answer) -> tuple[int, str | None]:
    """Status and code."""
    return answer.status, json.loads(answer.text).get("code")

"""An owner's side as small as it can be: items in stock, and one operation that takes some."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any, Final

from countersign_target import (
    ONLY_APP,
    Answer,
    Credentials,
    Operation,
    Plan,
    Planned,
    Problem,
    Request,
    Route,
    State,
    Store,
    Target,
    not_allowed,
    nothing_to_change,
    updates,
)
from countersign_target.strict_json import parse_object

APP_TOKEN: Final = "app-token-of-the-shop"
AGENT_TOKEN: Final = "agent-token-of-the-shop"
TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS items (name varchar(40) PRIMARY KEY, stock integer NOT NULL)",
    "CREATE TABLE IF NOT EXISTS taken (plan_id varchar(40) NOT NULL, amount integer NOT NULL)",
)
SCHEMA: Final = {
    "type": "object",
    "properties": {
        "item": {"type": "string", "maxLength": 40},
        "take": {"type": "integer", "minimum": 1},
        # How long apply takes, and where the process dies.
        "slow": {"type": "number"},
        "dies": {"enum": ["in apply", "after the commit", "by its database"]},
        "note": {"type": "string"},
    },
    "required": ["item", "take"],
    "additionalProperties": False,
}


class Shop:
    """The owner's two functions. `mark` stands for a value in SQL: `?` or `%s`."""

    def __init__(self, store: Store, mark: str) -> None:
        self.store = store
        self.mark = mark
        self.dies = ""
        self.mortal = True

    def run(self, connection: Any, statement: str, *values: Any) -> list[Any]:
        """Rows as tuples, whatever the store's connection makes of them."""
        cursor = connection.cursor()
        cursor.execute(statement.replace("?", self.mark), values)
        rows = cursor.fetchall() if cursor.description else []
        return [tuple(row.values() if isinstance(row, dict) else row) for row in rows]

    def stock(self, state: State, name: str) -> int | None:
        query = f"SELECT stock FROM items WHERE name = ?{state.for_update}"
        rows = self.run(state.connection, query, name)
        return rows[0][0] if rows else None

    def set_stock(self, connection: Any, name: str, stock: int) -> None:
        self.run(connection, "UPDATE items SET stock = ? WHERE name = ?", stock, name)

    def plan(self, inputs: dict[str, Any], state: State) -> Planned:
        stock = self.stock(state, inputs["item"])
        if stock is None:
            raise Problem(404, "unknown-item", "There is no such item.")
        if stock == 0:
            raise nothing_to_change("Nothing is left.")
        if inputs["take"] > stock:
            raise not_allowed(("/take", "is more than there is"))
        name = f"item/{inputs['item']}"
        return Planned(
            updates(name, {"stock": stock}, {"stock": stock - inputs["take"]}),
            {"slow": inputs.get("slow", 0), "dies": inputs.get("dies", "")},
        )

    def apply(self, plan: Plan) -> dict[str, Any]:
        left = plan.actions[0]["to"]
        self.set_stock(plan.connection, plan.inputs["item"], left)
        amount = plan.inputs["take"]
        self.run(plan.connection, "INSERT INTO taken VALUES (?, ?)", plan.plan_id, amount)
        time.sleep(plan.details["slow"])
        if plan.details["dies"] == "by its database" and self.mortal:
            self.run(plan.connection, "SELECT pg_terminate_backend(pg_backend_pid())")
        if plan.details["dies"] == "in apply" and self.mortal:
            os.kill(os.getpid(), signal.SIGKILL)
        self.dies = plan.details["dies"]
        return {"left": left}

    def routes(self) -> list[Route]:
        """For tests: put something in stock, and see what was taken."""

        def put(request: Request) -> Answer:
            body = parse_object(request.body)
            with self.store.transaction() as transaction:
                for each in ("DELETE FROM items WHERE name = ?", "INSERT INTO items VALUES (?, ?)"):
                    values = [body["item"], body["stock"]][: each.count("?")]
                    self.run(transaction.connection, each, *values)
            return Answer.of({})

        def taken(request: Request) -> Answer:
            query = "SELECT amount FROM taken WHERE plan_id = ?"
            with self.store.transaction() as transaction:
                rows = self.run(transaction.connection, query, request.parts["plan_id"])
            return Answer.of([row[0] for row in rows])

        def heal(request: Request) -> Answer:
            self.mortal = False
            return Answer.of({})

        return [
            Route("POST", "/_put", ONLY_APP, put),
            Route("POST", "/_heal", ONLY_APP, heal),
            Route("GET", "/_taken/{plan_id}", ONLY_APP, taken),
        ]

    def target(self, plan: Callable[..., Any] | None = None) -> Target:
        take = Operation("take", plan or self.plan, self.apply, schema=SCHEMA)
        credentials = Credentials(app=APP_TOKEN, agent=AGENT_TOKEN)
        return Target("shop", self.store, credentials, [take], routes=self.routes())

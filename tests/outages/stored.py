"""What the stage's database says, and what a test changes in it behind everybody's back."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row

from config.embedded import Cluster


class Stored:
    """Short connections of the test's own: the server may be gone at any time."""

    cluster: Cluster

    def connect(self) -> psycopg.Connection[dict[str, Any]]:
        return psycopg.connect(self.cluster.urls()["postgres"], row_factory=dict_row)

    def sql(self, query: str, *values: object) -> list[dict[str, Any]]:
        """Every row of a query; of another statement, none."""
        with self.connect() as connection:
            found = connection.execute(query.encode(), values or None)
            return found.fetchall() if found.description else []

    @contextmanager
    def locked(self, statement: str, *values: object) -> Iterator[None]:
        """Hold what the statement locks until the block ends; a crash of the server frees it."""
        connection = self.connect()
        try:
            connection.execute(statement.encode(), values or None)
            yield
        finally:
            connection.close()

    def waits_for_lock(self, role: str) -> bool:
        """Whether a statement of such a process waits for a lock."""
        query = """
            SELECT 1 FROM pg_stat_activity
            WHERE application_name = %s AND wait_event_type = 'Lock'
        """
        return bool(self.sql(query, f"countersign-{role}"))

    def pk(self, plan: Mapping[str, Any]) -> int:
        query = "SELECT id FROM plans_plan WHERE plan_id = %s"
        return int(self.sql(query, plan["plan_id"])[0]["id"])

    def attempts(self, plan: Mapping[str, Any]) -> list[str]:
        """The outcomes of a plan's attempts, in their order."""
        query = """
            SELECT outcome FROM plans_attempt attempt
            JOIN plans_plan plan ON plan.id = attempt.plan_id
            WHERE plan.plan_id = %s ORDER BY number
        """
        return [row["outcome"] for row in self.sql(query, plan["plan_id"])]

    def events(self, plan: Mapping[str, Any], action: str) -> list[dict[str, Any]]:
        """A plan's events of one kind: `details`, and `age` in seconds."""
        query = """
            SELECT details, extract(epoch FROM pg_catalog.clock_timestamp() - at)::float8 AS age
            FROM audit_event WHERE plan_id = %s AND action = %s ORDER BY id
        """
        return self.sql(query, plan["plan_id"], action)

    def late(self, plan: Mapping[str, Any], action: str) -> float:
        """How long after the plan's `decide_by` this happened, by the event's own time."""
        query = """
            SELECT extract(epoch FROM event.at - plan.decide_by)::float8 AS late
            FROM audit_event event JOIN plans_plan plan USING (plan_id)
            WHERE plan.plan_id = %s AND event.action = %s
        """
        return float(self.sql(query, plan["plan_id"], action)[0]["late"])

    def actions(self, plan: Mapping[str, Any]) -> list[str]:
        """The words of a plan's events, in their order."""
        query = "SELECT action FROM audit_event WHERE plan_id = %s ORDER BY id"
        return [row["action"] for row in self.sql(query, plan["plan_id"])]

    def decisions(self, plan: Mapping[str, Any]) -> int:
        query = """
            SELECT count(*) FROM approvals_decision decision
            JOIN plans_plan plan ON plan.id = decision.plan_id WHERE plan.plan_id = %s
        """
        return int(self.sql(query, plan["plan_id"])[0]["count"])

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """The server takes no change from anybody until the block ends."""
        self.sql("ALTER DATABASE countersign SET default_transaction_read_only = on")
        self.hang_up()
        try:
            yield
        finally:
            writable = "SET TRANSACTION READ WRITE; ALTER DATABASE countersign RESET "
            self.sql(f"{writable} default_transaction_read_only")
            self.hang_up()

    def hang_up(self) -> None:
        """Every connection older than this call is cut: the next ones find what was altered."""
        cut = """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
                AND backend_start < %s
        """
        (now,) = self.sql("SELECT pg_catalog.clock_timestamp() AS now")
        # Until two looks found none: one that was just starting is listed late.
        quiet = 0
        while quiet < 2:
            quiet = 0 if self.sql(cut, now["now"]) else quiet + 1
            time.sleep(0.1)

    def patience(self, seconds: float) -> None:
        """How long a commit may take; a lease is 15 s longer."""
        columns = ("connect", "read", "total")
        changes = ", ".join(f"{name}_timeout_seconds = {seconds}" for name in columns)
        self.sql(f"UPDATE plans_target SET {changes}")

    def lapse(self, plan: Mapping[str, Any]) -> None:
        """As if the lease of the attempt that is out were over."""
        row = "(SELECT id FROM plans_plan WHERE plan_id = %s)"
        past = "clock_timestamp() - interval '1 second'"
        self.sql(
            f"UPDATE plans_attempt SET lease_until = {past} WHERE outcome = 'open'"
            f" AND plan_id = {row}",
            plan["plan_id"],
        )
        self.sql(
            f"UPDATE plans_plan SET next_attempt_at = {past} WHERE plan_id = %s", plan["plan_id"]
        )

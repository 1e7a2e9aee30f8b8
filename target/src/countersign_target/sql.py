"""The statements that both databases share; `?` stands for a value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from countersign_target.canonical import compact
from countersign_target.plans import Plan, Status
from countersign_target.stores import Kept

PLANS = "countersign_plans"
KEYS = "countersign_keys"
COLUMNS = (
    "plan_id, token_sha256, operation, input_fingerprint, inputs, state, actions, details,"
    " created_at, expires_at, status, settled_at, outcome, idempotency_key, sends, sending_until"
)
INSERT = f"INSERT INTO {PLANS} ({COLUMNS}) VALUES ({', '.join(['?'] * 16)})"
UPDATE = (
    f"UPDATE {PLANS} SET status = ?, settled_at = ?, outcome = ?, idempotency_key = ?,"
    " sends = ?, sending_until = ? WHERE plan_id = ?"
)
KEEP = (
    f"INSERT INTO {KEYS} (key, request_sha256, status, answer, created_at) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (key) DO UPDATE SET request_sha256 = excluded.request_sha256,"
    " status = excluded.status, answer = excluded.answer"
)


def text_or_null(value: Any) -> str | None:
    """A value as JSON text."""
    return None if value is None else compact(value)


def value_or_none(text: str | None) -> Any:
    """The value of a JSON text."""
    return None if text is None else json.loads(text)


class SqlTransaction:
    """What is the same everywhere; a database adds `_run`, its clock and its locks."""

    def _run(self, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Rows of one statement."""
        raise AssertionError(statement)

    def now(self) -> datetime:
        """The database's clock at this moment."""
        raise AssertionError

    def _moment(self, value: Any) -> datetime:
        """A stored moment."""
        found: datetime = value
        return found

    def _stored(self, moment: datetime | None) -> Any:
        """A moment as it is stored."""
        return moment

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self._run("SAVEPOINT countersign")
        try:
            yield
        except BaseException:
            self._run("ROLLBACK TO SAVEPOINT countersign")
            raise
        finally:
            self._run("RELEASE SAVEPOINT countersign")

    @contextmanager
    def trial(self) -> Iterator[None]:
        self._run("SAVEPOINT countersign_trial")
        try:
            yield
        finally:
            self._run("ROLLBACK TO SAVEPOINT countersign_trial")
            self._run("RELEASE SAVEPOINT countersign_trial")

    def kept(self, key: str) -> Kept | None:
        rows = self._run(
            f"SELECT key, request_sha256, status, answer FROM {KEYS} WHERE key = ?", key
        )
        return next((Kept(row[0], bytes(row[1]), row[2], row[3]) for row in rows), None)

    def keep(self, kept: Kept, at: datetime) -> None:
        values = (kept.key, kept.request_sha256, kept.status, kept.text)
        self._run(KEEP, *values, self._stored(at))

    def drop_key(self, key: str) -> None:
        self._run(f"DELETE FROM {KEYS} WHERE key = ?", key)

    def forget_keys(self, before: datetime) -> None:
        # What is under way has no answer yet: it may still be needed.
        self._run(
            f"DELETE FROM {KEYS} WHERE created_at < ? AND status IS NOT NULL", self._stored(before)
        )

    def forget_plans(self, before: datetime) -> None:
        self._run(
            f"DELETE FROM {PLANS} WHERE expires_at < ?"
            " AND status IN ('open', 'expired', 'not_applied')",
            self._stored(before),
        )

    def add(self, plan: Plan) -> None:
        texts = (compact(each) for each in (plan.inputs, plan.state, plan.actions))
        moments = (self._stored(each) for each in (plan.created_at, plan.expires_at))
        names = (plan.plan_id, plan.token_sha256, plan.operation, plan.input_fingerprint)
        self._run(INSERT, *names, *texts, text_or_null(plan.details), *moments, *self._fate(plan))

    def update(self, plan: Plan) -> None:
        self._run(UPDATE, *self._fate(plan), plan.plan_id)

    def _fate(self, plan: Plan) -> tuple[Any, ...]:
        """The columns that change, in their order."""
        outcome, until = text_or_null(plan.outcome), self._stored(plan.sending_until)
        end = (plan.status.value, self._stored(plan.settled_at), outcome)
        return (*end, plan.idempotency_key, plan.sends, until)

    def _plan(self, row: Sequence[Any], now: datetime) -> Plan:
        return Plan(
            plan_id=row[0],
            token_sha256=bytes(row[1]),
            operation=row[2],
            input_fingerprint=row[3],
            inputs=json.loads(row[4]),
            state=json.loads(row[5]),
            actions=json.loads(row[6]),
            details=value_or_none(row[7]),
            created_at=self._moment(row[8]),
            expires_at=self._moment(row[9]),
            status=Status(row[10]),
            settled_at=None if row[11] is None else self._moment(row[11]),
            outcome=value_or_none(row[12]),
            idempotency_key=row[13],
            sends=row[14],
            sending_until=None if row[15] is None else self._moment(row[15]),
            now=now,
        )

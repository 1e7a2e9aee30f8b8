"""Plans and keys in PostgreSQL, in the database of the effect, through psycopg."""

from __future__ import annotations

import atexit
import contextlib
import functools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

import psycopg
from psycopg.rows import DictRow, dict_row, tuple_row
from psycopg_pool import ConnectionPool

from countersign_target.plans import Plan
from countersign_target.sql import COLUMNS, KEYS, PLANS, SqlTransaction
from countersign_target.stores import StoreAway

SETUP_LOCK = "countersign_target"
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS {PLANS} (
    plan_id text PRIMARY KEY,
    -- Only the hash: who reads this table cannot commit anything.
    token_sha256 bytea NOT NULL UNIQUE,
    operation text NOT NULL,
    input_fingerprint text NOT NULL,
    inputs text NOT NULL,
    state text NOT NULL,
    actions text NOT NULL,
    details text,
    created_at timestamptz(3) NOT NULL,
    expires_at timestamptz(3) NOT NULL CHECK (expires_at > created_at),
    status text NOT NULL CHECK (status IN
        ('open', 'sending', 'applied', 'not_applied', 'expired', 'partly_applied')),
    settled_at timestamptz(3),
    -- The result, or what the first refusal said: every later one repeats it.
    outcome text,
    idempotency_key text,
    sends integer NOT NULL,
    sending_until timestamptz(3),
    CHECK ((status IN ('open', 'sending')) = (settled_at IS NULL))
);
CREATE TABLE IF NOT EXISTS {KEYS} (
    key text PRIMARY KEY,
    request_sha256 bytea NOT NULL,
    -- NULL: an effect outside is under way.
    status smallint,
    answer text NOT NULL,
    created_at timestamptz(3) NOT NULL
);
CREATE INDEX IF NOT EXISTS {KEYS}_by_age ON {KEYS} (created_at);
"""
LOCK_SETUP = "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))"
HOLD_KEY = "SELECT pg_try_advisory_xact_lock(hashtextextended('key:' || ?, 7))"
# The lock is what a read-back looks at; the row alone would show it nothing.
LOCK_PLAN = (
    "SELECT plan_id, pg_advisory_xact_lock(hashtextextended('plan:' || plan_id, 7))"
    f" FROM {PLANS} WHERE token_sha256 = ?"
)
QUIET = "SELECT pg_try_advisory_xact_lock_shared(hashtextextended('plan:' || ?, 7))"
READ = f"SELECT {COLUMNS}, clock_timestamp() FROM {PLANS} WHERE plan_id = ?"


@functools.cache
def _composed(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


class PostgresTransaction(SqlTransaction):
    """A transaction that a psycopg connection is in; `connection` is what the owner works with."""

    for_update = " FOR UPDATE"

    def __init__(self, raw: psycopg.Connection[Any], connection: Any = None) -> None:
        self._raw = raw
        self.connection: Any = raw if connection is None else connection

    def _run(self, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        # The owner's connection may have a row factory of its own.
        with self._raw.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(_composed(statement), values or None)
            return cursor.fetchall() if cursor.description else []

    def prepare(self) -> None:
        """Create the tables, unless they are there: then no right to create is needed."""
        if self._run("SELECT to_regclass(?), to_regclass(?)", PLANS, KEYS)[0] == (PLANS, KEYS):
            return
        # CREATE … IF NOT EXISTS alone races.
        self._run(LOCK_SETUP, SETUP_LOCK)
        self._run(SCHEMA)

    def now(self) -> datetime:
        # now() would be the transaction's start, before any lock was waited for.
        rows = self._run("SELECT clock_timestamp()")
        return _floored(rows[0][0])

    def hold_key(self, key: str) -> bool:
        return bool(self._run(HOLD_KEY, key)[0][0])

    def lock(self, token_sha256: bytes) -> Plan | None:
        rows = self._run(LOCK_PLAN, token_sha256)
        # A statement of its own, after the lock, so that it sees what the last holder wrote.
        return self._found(f"{READ} FOR UPDATE", rows[0][0]) if rows else None

    def read(self, plan_id: str) -> tuple[Plan, bool] | None:
        # Held to the end of this transaction: no commit of this plan begins while it is read.
        quiet = bool(self._run(QUIET, plan_id)[0][0])
        plan = self._found(READ, plan_id)
        return (plan, quiet) if plan else None

    def _found(self, statement: str, plan_id: str) -> Plan | None:
        rows = self._run(statement, plan_id)
        return self._plan(rows[0], _floored(rows[0][-1])) if rows else None


def _floored(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


class Pool(Protocol):
    """What is needed of a psycopg_pool.ConnectionPool: rows may have any factory."""

    def connection(self) -> AbstractContextManager[psycopg.Connection[Any]]:
        """A connection, given back at the end."""
        ...

    def check(self) -> None:
        """Replace the connections that broke."""
        ...


class PostgresStore:
    """A PostgreSQL database: an address, for which a pool is made, or a pool of yours.

    The owner's functions get the pool's psycopg connection; with an address its rows are dicts.
    """

    def __init__(self, source: str | Pool, pool_size: int = 10) -> None:
        self._own = _pool(source, pool_size) if isinstance(source, str) else None
        if self._own is not None:
            # One that is only dropped holds up the end of the process for seconds.
            atexit.register(self._own.close)
        self.pool: Pool = self._own or source  # type: ignore[assignment]

    def prepare(self) -> None:
        """Create the tables where they are missing; several processes may do so at once."""
        with self.transaction() as transaction:
            transaction.prepare()

    def close(self) -> None:
        """Close the pool that was made for an address; a pool of yours stays open."""
        if self._own is not None:
            atexit.unregister(self._own.close)
            self._own.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[PostgresTransaction]:
        try:
            # A pool in autocommit mode begins none by itself; and nobody else may end this one.
            with self.pool.connection() as connection, connection.transaction():
                yield PostgresTransaction(connection)
        except psycopg.OperationalError as error:
            # Whatever broke this connection broke its neighbours too: replace them now.
            with contextlib.suppress(psycopg.OperationalError):
                self.pool.check()
            raise StoreAway(type(error).__name__) from error


def _pool(url: str, size: int) -> ConnectionPool[psycopg.Connection[DictRow]]:
    return ConnectionPool(
        url,
        connection_class=psycopg.Connection[DictRow],
        kwargs={"row_factory": dict_row},
        min_size=1,
        max_size=size,
        timeout=10,
        open=True,
    )

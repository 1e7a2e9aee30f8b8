"""Plans and keys in a SQLite file, beside the owner's own tables or alone."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

from countersign_target.canonical import rfc3339
from countersign_target.plans import Plan
from countersign_target.sql import COLUMNS, KEYS, PLANS, SqlTransaction
from countersign_target.stores import StoreAway

SCHEMA = f"""
CREATE TABLE IF NOT EXISTS {PLANS} (
    plan_id TEXT PRIMARY KEY,
    token_sha256 BLOB NOT NULL UNIQUE,
    operation TEXT NOT NULL,
    input_fingerprint TEXT NOT NULL,
    inputs TEXT NOT NULL,
    state TEXT NOT NULL,
    actions TEXT NOT NULL,
    details TEXT,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL CHECK (expires_at > created_at),
    status TEXT NOT NULL CHECK (status IN
        ('open', 'sending', 'applied', 'not_applied', 'expired', 'partly_applied')),
    settled_at TEXT,
    outcome TEXT,
    idempotency_key TEXT,
    sends INTEGER NOT NULL,
    sending_until TEXT,
    CHECK ((status IN ('open', 'sending')) = (settled_at IS NULL))
);
CREATE TABLE IF NOT EXISTS {KEYS} (
    key TEXT PRIMARY KEY,
    request_sha256 BLOB NOT NULL,
    status INTEGER,
    answer TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS {KEYS}_by_age ON {KEYS} (created_at);
"""


class SqliteTransaction(SqlTransaction):
    """A write transaction from its first statement on: whoever is in it is alone."""

    for_update = ""

    def __init__(self, raw: sqlite3.Connection, connection: Any = None) -> None:
        self._raw = raw
        self.connection: Any = raw if connection is None else connection

    def prepare(self) -> None:
        """Create the tables where they are missing."""
        for statement in filter(str.strip, SCHEMA.split(";")):
            self._run(statement)

    def begin(self) -> None:
        """Become the writer now, in a transaction that began as a reader."""
        # Changes no row, and waits for the lock of a write all the same.
        self._run(f"DELETE FROM {KEYS} WHERE 0")

    def _run(self, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        cursor = self._raw.cursor()
        # The owner's connection may have a row factory of its own.
        cursor.row_factory = None
        return cursor.execute(statement, values).fetchall()

    def now(self) -> datetime:
        # SQLite's clock is this machine's.
        moment = datetime.now(UTC)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    def _moment(self, value: Any) -> datetime:
        return datetime.fromisoformat(value)

    def _stored(self, moment: datetime | None) -> Any:
        return None if moment is None else rfc3339(moment)

    def hold_key(self, key: str) -> bool:
        return True  # nobody else can write now

    def lock(self, token_sha256: bytes) -> Plan | None:
        return self._find("token_sha256", token_sha256)

    def read(self, plan_id: str) -> tuple[Plan, bool] | None:
        plan = self._find("plan_id", plan_id)
        return (plan, True) if plan else None

    def _find(self, column: str, value: Any) -> Plan | None:
        rows = self._run(f"SELECT {COLUMNS} FROM {PLANS} WHERE {column} = ?", value)
        return self._plan(rows[0], self.now()) if rows else None


def is_locked(error: BaseException | None) -> bool:
    """Whether another connection held the file for too long."""
    locked = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    # The high bits say more than is of use here.
    return isinstance(error, sqlite3.Error) and error.sqlite_errorcode & 0xFF in locked


class Held(sqlite3.Connection):
    """A connection whose transaction only the kit ends: key, result and effect stay together."""

    def _refuse(self, *arguments: Any) -> NoReturn:
        raise RuntimeError("the kit commits, or rolls back: do neither in plan or apply")

    commit = rollback = executescript = __enter__ = __exit__ = _refuse


class SqliteStore:
    """A SQLite file. A connection for each transaction, so threads and processes may share it.

    `busy_seconds`: how long a transaction waits for another one before the caller hears 503.
    The owner's functions get a `sqlite3.Connection` whose rows are `sqlite3.Row`.
    """

    def __init__(self, path: str | os.PathLike[str], busy_seconds: float = 10.0) -> None:
        self.path = os.fspath(path)
        self.busy_seconds = busy_seconds

    def prepare(self) -> None:
        """Create the tables; readers and the writer do not block each other from then on (WAL)."""
        with self._connection() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            SqliteTransaction(connection).prepare()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        try:
            with self._connection() as connection:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield SqliteTransaction(connection)
                except BaseException:
                    if connection.in_transaction:  # a full disk ends it by itself
                        connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if is_locked(error):
                raise StoreAway("the file stays locked") from None
            raise

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connect = sqlite3.connect(
            self.path, timeout=self.busy_seconds, isolation_level=None, factory=Held
        )
        with contextlib.closing(connect) as connection:
            connection.row_factory = sqlite3.Row
            # An answer that was given must survive a power cut.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            yield connection

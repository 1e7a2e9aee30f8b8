"""Task states in a SQLite file: several processes, each with tasks of its own."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from pathlib import Path
from typing import Final

from countersign_agent.errors import StateDamaged
from countersign_agent.secret import Secret
from countersign_agent.stores import OWNER_ONLY, FileLock, Holds

_BUSY_SECONDS: Final = 10.0


class SqliteStore:
    """One row per task; only the file's owner can read it, and what is dropped is overwritten."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._holds = Holds()
        self._locks: dict[str, FileLock] = {}
        # SQLite would make it readable for everybody; its journal takes over these rights.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY))
        self._run(
            "CREATE TABLE IF NOT EXISTS tasks (task_id TEXT PRIMARY KEY, state TEXT NOT NULL)"
        )

    def hold(self, task_id: str) -> None:
        self._holds.take(task_id)
        name = hashlib.sha256(task_id.encode()).hexdigest()[:16]
        lock = FileLock(self.path.with_name(f"{self.path.name}.{name}.lock"))
        try:
            lock.take()
        except BaseException:
            self._holds.give_back(task_id)
            raise
        self._locks[task_id] = lock

    def load(self, task_id: str) -> Secret | None:
        rows = self._run("SELECT state FROM tasks WHERE task_id = ?", task_id)
        return Secret(rows[0][0]) if rows else None

    def save(self, task_id: str, text: Secret) -> None:
        self._run(
            "INSERT INTO tasks (task_id, state) VALUES (?, ?)"
            " ON CONFLICT (task_id) DO UPDATE SET state = excluded.state",
            task_id,
            text,
        )

    def drop(self, task_id: str) -> None:
        self._run("DELETE FROM tasks WHERE task_id = ?", task_id)

    def release(self, task_id: str) -> None:
        lock = self._locks.pop(task_id, None)
        if lock is not None:
            lock.give_back()
        self._holds.give_back(task_id)

    def tasks(self) -> list[str]:
        return [row[0] for row in self._run("SELECT task_id FROM tasks ORDER BY task_id")]

    def _run(self, statement: str, *values: str | Secret) -> list[tuple[str, ...]]:
        """A connection for each statement: nothing to close, to share or to inherit by a fork."""
        shown = [each.reveal() if isinstance(each, Secret) else each for each in values]
        try:
            connect = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
            with contextlib.closing(connect) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA secure_delete = ON")
                return connection.execute(statement, shown).fetchall()
        except sqlite3.DatabaseError:
            shown.clear()
        raise StateDamaged(f"{self.path.name} cannot be used as a SQLite file.")

"""Django's database as the kit's store: the effect by the ORM, the key beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.db import OperationalError, connections
from django.db.transaction import atomic

from countersign_target.sqlite import SqliteTransaction, is_locked
from countersign_target.stores import StoreAway

if TYPE_CHECKING:
    from countersign_target.postgresql import PostgresTransaction


class DjangoStore:
    """One of Django's databases: PostgreSQL by psycopg 3, or SQLite.

    What the ORM does in `plan` and `apply` is in the kit's transaction. Its `connection` is
    Django's, for `cursor()`.
    """

    def __init__(self, alias: str = "default") -> None:
        self.alias = alias

    def prepare(self) -> None:
        """Nothing: a migration made the tables, and targets are built while Django loads."""

    @contextlib.contextmanager
    def transaction(self) -> Iterator[PostgresTransaction | SqliteTransaction]:
        connection: Any = connections[self.alias]
        # Those of the driver too: what runs below Django is not translated.
        errors = (OperationalError, connection.Database.OperationalError)
        try:
            with atomic(using=self.alias, durable=True):
                begun = transaction_of(connection)
                if isinstance(begun, SqliteTransaction):
                    begun.begin()
                yield begun
        except errors as error:
            if connection.vendor == "sqlite" and not is_locked(error.__cause__ or error):
                raise
            connection.errors_occurred = True
            connection.close_if_unusable_or_obsolete()
            raise StoreAway(type(error).__name__) from error


def transaction_of(connection: Any) -> PostgresTransaction | SqliteTransaction:
    """The kit's view of the transaction that a Django connection is in."""
    connection.ensure_connection()
    if connection.vendor == "sqlite":
        return SqliteTransaction(connection.connection, connection)
    # Only who has PostgreSQL needs psycopg.
    from countersign_target.postgresql import PostgresTransaction

    return PostgresTransaction(connection.connection, connection)

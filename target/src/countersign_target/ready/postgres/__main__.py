"""`countersign-postgres-target FILE [--check]`: the target, until told to stop.

`--check` reads the file, asks the database about every statement and column without running any,
and ends: 0, or 2 with what is wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

try:
    import psycopg
    from psycopg import sql
    from psycopg_pool import ConnectionPool
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is missing: install countersign-target with its extra postgresql")

from countersign_target import Credentials, Operation, Target
from countersign_target.postgresql import PostgresStore
from countersign_target.ready.postgres.checking import complaints
from countersign_target.ready.postgres.config import PostgresSettings, read_settings
from countersign_target.ready.postgres.target import Sql
from countersign_target.ready.settings import ConfigurationError
from countersign_target.serving import serve

NAME = "postgres-target"
type Pool = ConnectionPool[psycopg.Connection[Any]]


def target_of(settings: PostgresSettings, pool: Pool) -> Target:
    """The target that a file describes; its two tables are made where they are missing."""
    service = settings.service
    return Target(
        NAME,
        PostgresStore(pool),
        Credentials(app=service.app_token, agent=service.agent_token),
        [
            Operation(change.name, Sql(change).plan, Sql(change).apply, lifespan=service.lifespan)
            for change in settings.changes
        ],
        key_retention_seconds=service.key_retention_seconds,
    )


def _prepare(settings: PostgresSettings) -> None:
    """The schema of the two tables; ConfigurationError where the guard could see nothing."""
    try:
        with psycopg.connect(settings.database_url) as connection:
            (counts,) = connection.execute("SHOW track_counts").fetchone() or ("off",)
            if counts != "on":
                raise ConfigurationError(
                    "database.url: track_counts is off, so nothing tells how many rows are written"
                )
            # Creating what exists would need rights that a target should not have.
            known = connection.execute("SELECT to_regnamespace(%s)", [settings.schema]).fetchone()
            if known == (None,):
                name = sql.Identifier(settings.schema)
                connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(name))
    except psycopg.OperationalError as fault:
        # Only what the server itself says: the rest may repeat a password out of a crooked URL.
        said = re.search(r"FATAL:\s+(.*)", str(fault))
        words = said[1] if said else "no server answers there"
        raise ConfigurationError(f"database.url: no connection: {words}") from None
    except psycopg.errors.InsufficientPrivilege as fault:
        words = fault.diag.message_primary or type(fault).__name__
        raise ConfigurationError(f"database.schema: {words}") from None
    except psycopg.ProgrammingError:
        raise ConfigurationError("database.url: is no address of a database") from None


def _pool(settings: PostgresSettings) -> Pool:
    given = {
        "search_path": f"{settings.schema},public",
        "statement_timeout": str(settings.statement_timeout),
        "lock_timeout": str(settings.lock_timeout),
        "idle_in_transaction_session_timeout": "60000",
        # Moments are shown as text: the same one for every reader.
        "TimeZone": "UTC",
    }
    options = " ".join(f"-c {name}={value}" for name, value in given.items())
    return ConnectionPool(
        settings.database_url,
        connection_class=psycopg.Connection[Any],
        kwargs={"options": options, "application_name": NAME},
        min_size=1,
        max_size=settings.pool_size,
        timeout=10,
        open=True,
    )


def main(arguments: list[str] | None = None) -> int:
    """Serve until told to stop; 2 when the file or what it names cannot be used."""
    parser = argparse.ArgumentParser(prog="countersign-postgres-target", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true", help="read the file, ask, and end")
    given = parser.parse_args(arguments)
    try:
        settings = read_settings(given.file)
        _prepare(settings)
    except ConfigurationError as error:
        print(f"{given.file}: {error}", file=sys.stderr)
        return 2
    with _pool(settings) as pool:
        target = target_of(settings, pool)
        if given.check:
            return _checked(given.file, settings, pool)
        serve(target, settings.service.host, settings.service.port)
    return 0


def _checked(file: Path, settings: PostgresSettings, pool: Pool) -> int:
    with pool.connection() as connection:
        found = list(complaints(connection, settings.changes))
    for words in found:
        print(f"{file}: {words}", file=sys.stderr)
    if found:
        return 2
    print(f"{file}: can be used")
    return 0


if __name__ == "__main__":
    sys.exit(main())

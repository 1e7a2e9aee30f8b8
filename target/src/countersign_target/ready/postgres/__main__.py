"""`countersign-postgres-target FILE [--check]`: the target, until told to stop.

`--check` reads the file, tries the database, and ends: 0, or 2 with what is wrong.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg_pool import ConnectionPool

from countersign_target import Credentials, Operation, Target
from countersign_target.postgresql import PostgresStore
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
        raise ConfigurationError(f"database.url: {type(fault).__name__}: no connection") from None


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
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(arguments)
    try:
        settings = read_settings(given.file)
        _prepare(settings)
    except ConfigurationError as error:
        print(f"{given.file}: {error}", file=sys.stderr)
        return 2
    with _pool(settings) as pool:
        target = target_of(settings, pool)
        if not given.check:
            serve(target, settings.service.host, settings.service.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())

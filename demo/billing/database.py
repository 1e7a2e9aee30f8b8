"""Billing's own PostgreSQL database: made, filled and opened here."""

from pathlib import Path
from typing import Any

import psycopg
from psycopg import conninfo, errors, sql
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool

from .seeds import INVOICES

Row = dict[str, Any]
Connection = psycopg.Connection[DictRow]
Pool = ConnectionPool[Connection]

SCHEMA = Path(__file__).with_name("schema.sql")
SETUP_LOCK = 4412


def open_pool(url: str, size: int = 16) -> Pool:
    """A pool on the database at `url`, which is created first where it is missing."""
    _create_database(url)
    pool: Pool = ConnectionPool(
        url,
        connection_class=psycopg.Connection[DictRow],
        kwargs={"row_factory": dict_row},
        min_size=2,
        max_size=size,
        timeout=10,
        open=True,
    )
    pool.wait(timeout=30)
    return pool


def fill(connection: Connection) -> None:
    """Billing's own tables, beside the kit's, and the invoices to start with."""
    # Two billing processes may start at once; CREATE … IF NOT EXISTS alone races.
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [SETUP_LOCK])
    connection.execute(SCHEMA.read_bytes())
    connection.cursor().executemany(
        "INSERT INTO invoices (number, customer, description, amount_cents)"
        " VALUES (%s, %s, %s, %s) ON CONFLICT (number) DO NOTHING",
        INVOICES,
    )


def _create_database(url: str) -> None:
    """CREATE DATABASE where the server says that there is none of that name."""
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError as error:
        name = str(conninfo.conninfo_to_dict(url).get("dbname") or "")
        if not _is_missing(error, name):
            raise
        server = conninfo.make_conninfo(url, dbname="postgres")
        with psycopg.connect(server, autocommit=True) as connection:
            try:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            except (errors.DuplicateDatabase, errors.UniqueViolation):
                return  # another billing process was quicker


def _is_missing(error: psycopg.OperationalError, name: str) -> bool:
    # A refused connection carries no SQLSTATE, only the server's words.
    return bool(name) and f'database "{name}" does not exist' in str(error)

"""PostgreSQL with a clock that is off: its own functions of time, put before the built-in ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.outages.stage import Stage

FUNCTIONS = ("clock_timestamp", "statement_timestamp", "transaction_timestamp", "now")


@contextmanager
def pg_clock_off(stage: Stage, *, hours: int) -> Iterator[None]:
    """Every connection of the stage's database lives so many hours off until the block ends."""
    stage.sql("CREATE SCHEMA clock_off")
    for name in FUNCTIONS:
        stage.sql(
            f"CREATE FUNCTION clock_off.{name}() RETURNS timestamptz LANGUAGE sql VOLATILE AS"
            f" $$ SELECT pg_catalog.{name}() + interval '{hours} hours' $$"
        )
    # A default was bound to the built-in clock when its table was made.
    stage.sql(f"ALTER TABLE audit_event ALTER COLUMN at SET DEFAULT clock_off.{FUNCTIONS[0]}()")
    stage.sql("ALTER DATABASE countersign SET search_path = clock_off, pg_catalog, public")
    stage.hang_up()
    try:
        yield
    finally:
        stage.sql("ALTER DATABASE countersign RESET search_path")
        stage.sql(f"ALTER TABLE audit_event ALTER COLUMN at SET DEFAULT {FUNCTIONS[0]}()")
        stage.hang_up()
        stage.sql("DROP SCHEMA clock_off CASCADE")

"""PostgreSQL that takes no event for a while, with the SQLSTATE that a test names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


def sql(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@contextmanager
def trail_refuses(code: str, times: int) -> Iterator[None]:
    """The next so many events are refused with this SQLSTATE; a sequence is not rolled back."""
    sql(
        "CREATE SEQUENCE refusals",
        f"""CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF nextval('refusals') <= {times} THEN RAISE SQLSTATE '{code}'; END IF;
                RETURN NEW;
            END $$""",
        "CREATE TRIGGER refuse BEFORE INSERT ON audit_event FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    try:
        yield
    finally:
        sql(
            "DROP TRIGGER refuse ON audit_event",
            "DROP FUNCTION refuse",
            "DROP SEQUENCE refusals",
        )

"""The one clock that decides: PostgreSQL's, read in a statement of its own (C-1, B-3)."""

from __future__ import annotations

from datetime import datetime

from django.db import connection


def clock() -> datetime:
    """`clock_timestamp()` now. Under a lock, call it after the lock was taken."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row = cursor.fetchone()
    instant: datetime = row[0]
    return instant

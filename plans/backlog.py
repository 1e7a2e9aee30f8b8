"""How far the engine is behind what is due."""

from __future__ import annotations

from django.db import connection

_OLDEST = """
    SELECT round(extract(epoch FROM clock_timestamp() - min(next_attempt_at))::numeric, 3)::float8
    FROM plans_plan
    WHERE next_attempt_at IS NOT NULL AND next_attempt_at <= clock_timestamp()
"""


def oldest_due_seconds() -> float:
    """Age of the oldest commit that is due and has not left; 0 when none is."""
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST)
        row = cursor.fetchone()
    return float(row[0] or 0)

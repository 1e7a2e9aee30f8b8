"""How long the oldest event has waited for its seal (L-2)."""

from __future__ import annotations

from typing import Final

from django.db import connection

# Of the era in force: the sealer finishes the ones before it first. The bound above lets the index
# pass the rows of an older era, whose transaction numbers are higher.
_OLDEST: Final = """
    WITH sealed AS (SELECT last_xid, last_id FROM audit_seal
        WHERE era = audit_current_era() ORDER BY number DESC LIMIT 1)
    SELECT extract(epoch FROM clock_timestamp() - at)::float8 FROM audit_event
    WHERE era = audit_current_era()
        AND xid < pg_snapshot_xmax(pg_current_snapshot())::text::bigint
        AND (xid, id) > (
            coalesce((SELECT last_xid FROM sealed), 0), coalesce((SELECT last_id FROM sealed), 0))
    ORDER BY xid, id LIMIT 1
"""


def unsealed_seconds() -> float:
    """Age of the oldest event without a seal; 0 when all have one."""
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST)
        row = cursor.fetchone()
    return round(max(0.0, float(row[0])), 3) if row else 0.0

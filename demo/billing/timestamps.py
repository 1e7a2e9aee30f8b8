"""Times as billing writes them."""

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds and `Z`: `2026-01-31T09:31:12.040Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + (
        f"{moment.microsecond // 1000:03d}Z"
    )

"""How far a target's clock is from ours, as its answers show it (C-2)."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def skew(date: str, now: datetime) -> float | None:
    """Seconds that the clock behind a `Date` header is ahead; None for what is no HTTP date."""
    try:
        then = parsedate_to_datetime(date)
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        # A date names a whole second; its middle is the best guess.
        return (then - now).total_seconds() + 0.5
    except (ValueError, OverflowError):
        return None

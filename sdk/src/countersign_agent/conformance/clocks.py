"""How far a target's clock is from ours, as its answers show it (C-2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime


def skew(date: str, sent: datetime, answered: datetime) -> float | None:
    """Seconds that the clock behind a `Date` header is ahead; None for what is no HTTP date.

    0 for any moment of the exchange: servers date an answer when it begins, or when it is done.
    """
    try:
        then = parsedate_to_datetime(date)
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        # A date names a whole second; its middle is the best guess.
        middle = then + timedelta(seconds=0.5)
        return (middle - min(max(middle, sent), answered)).total_seconds()
    except (ValueError, OverflowError):
        return None

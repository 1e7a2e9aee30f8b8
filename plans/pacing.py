"""How long to wait before a commit is sent again: T-9 and T-13. Pure; the waiting is rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

RETRY_AFTER_CAP = 300.0
"""Seconds: no target may park a plan longer (T-9)."""

NOT_SENT_DELAYS = (1.0, 3.0, 9.0, 20.0)
"""Seconds; the last one repeats for as long as T-3 allows a send (T-13)."""

MOST_JITTER = 0.2


def retry_delay(
    attempt_no: int, delays: Sequence[float] = (1, 3, 9, 20), jitter: float = 0.0
) -> float | None:
    """Seconds before the resend that follows attempt `attempt_no` (1, 2, …); None: no more (T-9).

    `jitter` is a share of the delay, kept within -0.2 … +0.2.
    """
    if not 1 <= attempt_no <= len(delays):
        return None
    return delays[attempt_no - 1] * (1 + min(MOST_JITTER, max(-MOST_JITTER, jitter)))


def not_sent_delay(n: int) -> float:
    """Seconds before the next try after the `n`-th (1, 2, …) `not_sent` or 429 in a row (T-13)."""
    return NOT_SENT_DELAYS[min(max(n, 1), len(NOT_SENT_DELAYS)) - 1]


def parse_retry_after(value: str | None, now: datetime | None) -> float | None:
    """Seconds asked for by a `Retry-After`, at most `RETRY_AFTER_CAP`; None for junk (T-9).

    An HTTP-date counts from `now` (aware) and needs it; one in the past is junk.
    """
    text = (value or "").strip()
    if re.fullmatch(r"[0-9]+", text, re.ASCII):
        # More than ten digits are over the cap whatever they say; int() refuses 4,301 of them.
        return min(float(text), RETRY_AFTER_CAP) if len(text) <= 10 else RETRY_AFTER_CAP
    then = http_date(text)
    if then is None or now is None or then <= now:
        return None
    return min((then - now).total_seconds(), RETRY_AFTER_CAP)


def http_date(text: str | None) -> datetime | None:
    """The moment a `Date` or `Retry-After` header names, aware, in UTC; None for junk."""
    try:
        then = parsedate_to_datetime(text or "")
        return then.astimezone(UTC) if then.tzinfo else then.replace(tzinfo=UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None

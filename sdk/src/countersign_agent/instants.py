"""Moments as targets and servers write them, read once and kept in UTC."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

# [0-9] and not \d, which takes the digits of every script.
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
    r"(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])"
)

type Clock = Callable[[], datetime]


def now() -> datetime:
    """The clock of this machine, in UTC."""
    return datetime.now(UTC)


def read_instant(text: object) -> datetime:
    """An RFC 3339 text with its offset, as UTC. ValueError for anything else (A-19)."""
    if not isinstance(text, str) or not _INSTANT.fullmatch(text) or text.endswith("-00:00"):
        raise ValueError("not an RFC 3339 time with an offset from UTC")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError:
        raise ValueError("a time beyond the years 1 to 9999") from None


def write_instant(moment: datetime) -> str:
    """RFC 3339 in UTC, to the microsecond."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")

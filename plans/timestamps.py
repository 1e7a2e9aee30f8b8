"""Instants as agents and targets write them, and the time a plan leaves to its reviewers (A-19)."""

import re
from datetime import UTC, datetime, timedelta, timezone

from plans.errors import (
    AlreadyExpired,
    InvalidTimestamp,
    OffsetRequired,
    WindowTooLong,
    WindowTooShort,
)

# [0-9] and not \d: \d takes the digits of every script.
_INSTANT = re.compile(
    r"(?P<naive>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?:\.(?P<fraction>[0-9]{1,6}))?"
    r"(?P<offset>Z|(?P<sign>[+-])(?P<hours>[0-9]{2}):(?P<minutes>[0-5][0-9]))?"
)
_EARLIEST_OFFSET = timedelta(hours=-12)
_LATEST_OFFSET = timedelta(hours=14)


def parse_instant(text: object, pointer: str) -> datetime:
    """An RFC 3339 text as UTC floored to milliseconds; InvalidTimestamp or OffsetRequired (A-19).

    An instant outside years 1 to 9999 in UTC becomes the nearest one inside (BI-25): the window
    check refuses it with the reason that is true.
    """
    match = _INSTANT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidTimestamp(pointer=pointer)
    if match["offset"] is None:
        raise OffsetRequired(pointer=pointer)
    offset = _offset(match, pointer)
    microsecond = int((match["fraction"] or "0").ljust(3, "0")[:3]) * 1000
    numbers = map(int, re.split("[-T:]", match["naive"]))
    try:
        naive = datetime(*numbers, microsecond=microsecond)  # type: ignore[arg-type,misc]
    except ValueError:
        naive = None
    if naive is None:
        raise InvalidTimestamp("There is no such date and time.", pointer=pointer)
    try:
        return naive.replace(tzinfo=timezone(offset)).astimezone(UTC)
    except OverflowError:
        nearest = datetime.max if offset < timedelta(0) else datetime.min
        return _floor_to_ms(nearest.replace(tzinfo=UTC))


def _offset(match: re.Match[str], pointer: str) -> timedelta:
    """What the text is ahead of UTC; -00:00 says "unknown" in RFC 3339 and is refused."""
    if match["offset"] == "Z":
        return timedelta(0)
    size = timedelta(hours=int(match["hours"]), minutes=int(match["minutes"]))
    offset = -size if match["sign"] == "-" else size
    unknown = match["sign"] == "-" and not size
    if unknown or not _EARLIEST_OFFSET <= offset <= _LATEST_OFFSET:
        raise InvalidTimestamp("The offset must be within -12:00 and +14:00.", pointer=pointer)
    return offset


def check_window(
    expires_at: datetime,
    now: datetime,
    *,
    min_seconds: int,
    max_seconds: int,
    margin_seconds: float,
    pointer: str,
) -> None:
    """Refuse a plan that is expired, or leaves too little or too much time to review (A-19)."""
    left = (expires_at - now).total_seconds()
    if left <= 0:
        raise AlreadyExpired(pointer=pointer)
    if left < min_seconds or left <= margin_seconds:
        raise WindowTooShort(
            f"The plan must leave at least {min_seconds} s, and more than the "
            f"{margin_seconds:g} s that sending it may take.",
            pointer=pointer,
        )
    if left > max_seconds:
        raise WindowTooLong(f"The plan may leave at most {max_seconds} s.", pointer=pointer)


def send_margin(window_seconds: float, total_timeout_seconds: float) -> float:
    """Seconds before the expiry after which nothing is sent: never over a quarter (T-3)."""
    return min(total_timeout_seconds, window_seconds / 4)


def decide_by(
    expires_at: datetime, received_at: datetime, total_timeout_seconds: float
) -> datetime:
    """The last moment of a decision: `expires_at` less the send margin, floored to ms (B-3)."""
    window = (expires_at - received_at).total_seconds()
    margin = send_margin(window, total_timeout_seconds)
    return _floor_to_ms(expires_at - timedelta(seconds=margin))


def rfc3339(instant: datetime) -> str:
    """An aware datetime as 2026-03-14T09:41:12.345Z, floored to milliseconds."""
    if instant.tzinfo is None:
        raise ValueError("a naive datetime names no instant")
    # isoformat cuts off what is below a millisecond, and keeps the zeros of early years.
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _floor_to_ms(instant: datetime) -> datetime:
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)

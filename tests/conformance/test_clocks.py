"""A target's clock is held against the whole exchange, however long the target worked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from countersign_agent.conformance.clocks import skew

ANSWERED = datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("dated", "seconds", "off"),
    [(0, 0, 0), (-90, 90, 0), (-40, 90, 0), (-151, 90, -61), (61, 90, 61), (-61, 0, -61)],
)
def test_a_clock_is_off_by_what_lies_outside_of_the_exchange(
    dated: int, seconds: int, off: int
) -> None:
    date = format_datetime(ANSWERED.replace(microsecond=0) + timedelta(seconds=dated), usegmt=True)
    assert skew(date, ANSWERED - timedelta(seconds=seconds), ANSWERED) == off


@pytest.mark.parametrize(
    "date", ["", "yesterday", "Fri, 99 Foo 99999 1:1:1 X", "Fri, 31 Dec 9999 23:59:59 -1400"]
)
def test_what_is_no_date_says_nothing_or_far_away(date: str) -> None:
    found = skew(date, ANSWERED, ANSWERED)
    assert found is None or found > 1e9

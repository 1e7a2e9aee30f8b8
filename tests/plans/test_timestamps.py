"""Instants and windows (A-19, B-3, T-3, BI-19…BI-26)."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans import errors
from plans.errors import Problem
from plans.timestamps import check_window, decide_by, parse_instant, rfc3339, send_margin

NOW = datetime(2026, 3, 14, 9, 41, 12, tzinfo=UTC)

TAKEN = [
    ("2026-03-14T09:41:12Z", "2026-03-14T09:41:12.000Z"),
    ("2026-03-14T09:41:12.9Z", "2026-03-14T09:41:12.900Z"),
    ("2026-03-14T09:41:12.999999Z", "2026-03-14T09:41:12.999Z"),
    ("2026-03-14T09:41:12.0005+00:00", "2026-03-14T09:41:12.000Z"),
    ("2026-03-14T23:41:12+14:00", "2026-03-14T09:41:12.000Z"),  # BI-20
    ("2026-03-13T21:41:12-12:00", "2026-03-14T09:41:12.000Z"),
    ("2026-03-14T15:11:12+05:30", "2026-03-14T09:41:12.000Z"),
    ("2028-02-29T00:00:00Z", "2028-02-29T00:00:00.000Z"),
    ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z"),
    ("9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59.999Z"),  # BI-25
    ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00.000Z"),
    ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
]

REFUSED = [
    # BI-19
    ("2026-03-14T09:41:12", errors.OffsetRequired),
    ("2026-03-14T09:41:12.123", errors.OffsetRequired),
    # BI-21
    *[
        (f"2026-03-14T09:41:12{offset}", errors.InvalidTimestamp)
        for offset in (
            *["+15:00", "+14:01", "-12:01", "+24:00", "-00:00", "+0530", "+05", "+05:60", "+5:30"],
            *[" +05:30", "z", "ZZ", "+05:30:00", "UTC", " Z", "Z\n", "\u221205:00"],
        )
    ],
    # BI-22
    ("2026-03-14T09:41:60Z", errors.InvalidTimestamp),
    ("2016-12-31T23:59:60Z", errors.InvalidTimestamp),
    ("2026-03-14T09:41:61Z", errors.InvalidTimestamp),
    ("2026-03-14T24:00:00Z", errors.InvalidTimestamp),
    ("2026-03-14T09:60:00Z", errors.InvalidTimestamp),
    ("2026-02-29T00:00:00Z", errors.InvalidTimestamp),
    ("2026-13-01T00:00:00Z", errors.InvalidTimestamp),
    ("2026-00-01T00:00:00Z", errors.InvalidTimestamp),
    ("0000-01-01T00:00:00Z", errors.InvalidTimestamp),
    # BI-23
    ("2026-03-14", errors.InvalidTimestamp),
    ("2026-W11-6T09:41:12Z", errors.InvalidTimestamp),
    ("2026-073T09:41:12Z", errors.InvalidTimestamp),
    ("20260314T094112Z", errors.InvalidTimestamp),
    ("2026-03-14 09:41:12Z", errors.InvalidTimestamp),
    ("2026-03-14t09:41:12Z", errors.InvalidTimestamp),
    ("2026-03-14T09:41Z", errors.InvalidTimestamp),
    ("\uff12\uff10\uff12\uff16-03-14T09:41:12Z", errors.InvalidTimestamp),
    ("\u0662\u0660\u0662\u0666-03-14T09:41:12Z", errors.InvalidTimestamp),
    ("1773481272", errors.InvalidTimestamp),
    (1773481272, errors.InvalidTimestamp),
    (1773481272.5, errors.InvalidTimestamp),
    (True, errors.InvalidTimestamp),
    (None, errors.InvalidTimestamp),
    ({}, errors.InvalidTimestamp),
    ("", errors.InvalidTimestamp),
    # BI-25
    ("infinity", errors.InvalidTimestamp),
    ("12026-03-14T09:41:12Z", errors.InvalidTimestamp),
    # BI-26
    ("2026-03-14T09:41:12.1234567Z", errors.InvalidTimestamp),
    ("2026-03-14T09:41:12.Z", errors.InvalidTimestamp),
    ("2026-03-14T09:41:12,5Z", errors.InvalidTimestamp),
]


@pytest.mark.parametrize(("text", "stored"), TAKEN)
def test_it_reads_rfc_3339_as_utc_floored_to_milliseconds(text: str, stored: str) -> None:
    instant = parse_instant(text, "/plan/expires_at")
    assert instant.utcoffset() == timedelta(0)
    assert instant.microsecond % 1000 == 0
    assert rfc3339(instant) == stored


@pytest.mark.parametrize(("text", "problem"), REFUSED)
def test_it_refuses_every_other_way_to_write_a_time(text: object, problem: type[Problem]) -> None:
    with pytest.raises(Problem) as refusal:
        parse_instant(text, "/plan/expires_at")
    assert type(refusal.value) is problem
    assert refusal.value.status == 422
    assert refusal.value.errors[0].pointer == "/plan/expires_at"


@given(st.text() | st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(Z|[+-][0-9:]{5})"))
def test_any_text_is_an_instant_or_a_problem(text: str) -> None:
    with suppress(Problem):
        assert parse_instant(text, "").tzinfo is UTC


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)),
    st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
def test_what_it_writes_it_reads_back(naive: datetime, zone: timezone) -> None:
    instant = naive.replace(tzinfo=zone)
    read = parse_instant(rfc3339(instant), "")
    assert timedelta(0) <= instant - read < timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("left", "problem"),
    [
        # BI-24
        (timedelta(days=-1), errors.AlreadyExpired),
        (timedelta(0), errors.AlreadyExpired),
        (timedelta(milliseconds=1), errors.WindowTooShort),
        (timedelta(seconds=59.999), errors.WindowTooShort),
        (timedelta(seconds=60), None),
        (timedelta(hours=24), None),
        (timedelta(hours=24, milliseconds=1), errors.WindowTooLong),
        (datetime(9999, 12, 31, tzinfo=UTC) - NOW, errors.WindowTooLong),
    ],
)
def test_it_refuses_a_window_that_no_one_could_use(
    left: timedelta, problem: type[Problem] | None
) -> None:
    def check() -> None:
        check_window(
            NOW + left,
            NOW,
            min_seconds=60,
            max_seconds=86_400,
            margin_seconds=15,
            pointer="/plan/expires_at",
        )

    if problem is None:
        check()
        return
    with pytest.raises(problem) as refusal:
        check()
    assert refusal.value.errors[0].pointer == "/plan/expires_at"


def test_a_window_must_be_longer_than_the_send_margin() -> None:
    with pytest.raises(errors.WindowTooShort):
        check_window(
            NOW + timedelta(seconds=10),
            NOW,
            min_seconds=1,
            max_seconds=60,
            margin_seconds=10,
            pointer="",
        )


@pytest.mark.parametrize(
    ("window", "total", "margin"), [(600, 45, 45), (180, 45, 45), (60, 45, 15), (4, 45, 1)]
)
def test_the_send_margin_is_never_more_than_a_quarter_of_the_window(
    window: float, total: float, margin: float
) -> None:
    assert send_margin(window, total) == margin
    expires_at = NOW + timedelta(seconds=window)
    assert decide_by(expires_at, NOW, total) == expires_at - timedelta(seconds=margin)


def test_the_last_moment_to_decide_is_rounded_to_the_earlier_millisecond() -> None:
    received_at = NOW + timedelta(microseconds=123)
    moment = decide_by(NOW + timedelta(seconds=60), received_at, 45)
    assert rfc3339(moment) == "2026-03-14T09:41:57.000Z"
    assert moment.microsecond % 1000 == 0


def test_a_naive_time_is_never_written() -> None:
    with pytest.raises(ValueError, match="naive"):
        rfc3339(datetime(2026, 3, 14))

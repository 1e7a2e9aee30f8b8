"""T-9 and T-13: how long to wait before a commit is sent again."""

from datetime import UTC, datetime

import pytest

from plans.outcomes import not_sent_delay, parse_retry_after, retry_delay

NOW = "Fri, 14 Mar 2025 09:41:12 GMT"


@pytest.mark.parametrize(
    ("attempt_no", "jitter", "seconds"),
    [
        (1, 0.0, 1.0),
        (2, 0.0, 3.0),
        (3, 0.0, 9.0),
        (4, 0.0, 20.0),
        (5, 0.0, None),
        (0, 0.0, None),
        (1, 0.2, 1.2),
        (4, -0.2, 16.0),
        (4, 5.0, 24.0),
        (4, -5.0, 16.0),
    ],
)
def test_resends_come_at_about_1_3_9_and_20_seconds(
    attempt_no: int, jitter: float, seconds: float | None
) -> None:
    delay = retry_delay(attempt_no, jitter=jitter)
    assert delay == (None if seconds is None else pytest.approx(seconds))


def test_a_target_may_have_its_own_delays() -> None:
    assert [retry_delay(n, [0.05, 0.1]) for n in (1, 2, 3)] == [0.05, 0.1, None]
    assert retry_delay(1, []) is None


def test_what_was_not_sent_is_tried_after_1_3_9_then_every_20_seconds() -> None:
    assert [not_sent_delay(n) for n in (0, 1, 2, 3, 4, 5, 99)] == [1, 1, 3, 9, 20, 20, 20]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0),
        (" 2 ", 2.0),
        ("0", 0.0),
        ("300", 300.0),
        ("301", 300.0),
        ("9999999999", 300.0),
        ("9" * 5000, 300.0),
        ("Fri, 14 Mar 2025 09:42:12 GMT", 60.0),
        ("Friday, 14-Mar-25 09:42:12 GMT", 60.0),
        ("Fri, 14 Mar 2025 10:42:12 GMT", 300.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 300.0),
        ("Fri, 31 Dec 9999 23:59:59 -1200", None),
        ("Fri, 31 Dec 1999 23:59:59 GMT", None),
        (NOW, None),
        ("-1", None),
        ("+2", None),
        ("1.5", None),
        ("1e3", None),
        ("٣", None),
        ("²", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("2, 3", None),
    ],
)
def test_a_retry_after_is_capped_or_ignored(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, datetime(2025, 3, 14, 9, 41, 12, tzinfo=UTC)) == seconds

"""A target's clock is held against the whole exchange: its work is no lag of its clock (C-2)."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime, formatdate

import pytest

from plans.exchanges import Answer, Call, Endpoint
from plans.gateway import exchange, skew_of
from plans.health import TOLERATED_SKEW
from plans.recording import clock_alarm
from tests.faults.raw_target import MODES, Mode, RawTarget, head

ANSWERED = datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("dated", "seconds", "skew"),
    [
        # Seconds of the `Date` after the answer came, and how long the exchange took.
        (0, 0.1, 0.0),
        (-300, 300.0, 0.0),
        (-150, 300.0, 0.0),
        (0, 300.0, 0.0),
        (60, 300.0, 60.0),
        (61, 300.0, 61.0),
        (-360, 300.0, -60.0),
        (-361, 300.0, -61.0),
        (-61, 0.0, -61.0),
        (3600, 45.0, 3600.0),
    ],
)
def test_a_clock_is_off_by_what_lies_outside_of_the_exchange(
    dated: int, seconds: float, skew: float
) -> None:
    date = format_datetime(datetime.fromtimestamp(ANSWERED - 0.5 + dated, UTC), usegmt=True)
    found = skew_of(date, ANSWERED, seconds)
    assert found == pytest.approx(skew)
    alarm = clock_alarm(Answer(200, {}, b"", date_skew_seconds=found))
    assert (alarm is not None) == (abs(skew) > TOLERATED_SKEW)


def test_a_slow_answer_that_was_dated_when_it_began_is_on_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    date = f"Date: {formatdate(usegmt=True)}"
    begun = Mode([head(date, "Content-Length: 2"), b"{}"], pause=1.2)
    monkeypatch.setitem(MODES, "begun", begun)
    with RawTarget("begun") as target:
        answer = exchange(Endpoint(target.base_url, internal=True), Call("GET", "/plans/plan_1"))
    assert isinstance(answer, Answer)
    assert answer.date_skew_seconds == pytest.approx(0.0, abs=0.6)

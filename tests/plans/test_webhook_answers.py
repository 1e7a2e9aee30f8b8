"""What a receiver answers: only a complete 2xx in time is a delivery."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from plans import webhooks
from plans.models import Webhook
from plans.webhooks import due
from tests.faults.raw_target import CHUNKED, Mode, chunk, dripped, head, refused_port, whole
from tests.plans.receiver import SECOND, Line, Receiver, happened, make_due, queued, status, wait_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("calls_in_the_tests_transaction")]


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
def test_every_complete_2xx_is_delivered(line: Line, code: int) -> None:
    line.receiver.answers(status(code) if code != 204 else Mode([head(status="204 No Content")]))
    assert line.deliver() == 1
    assert line.log() == [("delivered", code)]


@pytest.mark.parametrize("code", [300, 301, 302, 304, 307, 308, 400, 401, 404, 409, 429, 500, 503])
def test_nothing_else_is(line: Line, code: int) -> None:
    """No redirect is followed, to an internal host least of all (FM-21)."""
    inside = Receiver()
    with inside:
        line.receiver.answers(status(code, f"Location: {inside.url}"))
        assert line.deliver() == 0
        assert inside.connections == 0
    assert line.log() == [("refused", code)]
    assert line.fresh()[1].status == "waiting"


ASKED = {
    "60": 60,
    "9999999999": 300,
    "9" * 5000: 300,
    "2": 5,
    "-1": 5,
    "soon": 5,
    "Fri, 31 Dec 1999 23:59:59 GMT": 5,
    "Sat, 06 Nov 2094 08:49:37 GMT": 300,
}


@pytest.mark.parametrize("asked", ASKED)
def test_retry_after_bounds_below_and_is_capped(line: Line, asked: str) -> None:
    line.receiver.answers(status(429, f"Retry-After: {asked}"), status(200))
    line.deliver()
    wait = timedelta(seconds=ASKED[asked])
    assert wait_of(line.delivery) == pytest.approx(wait, abs=SECOND)


def test_a_receiver_that_asks_to_wait_gets_nothing_else_meanwhile(line: Line) -> None:
    line.receiver.answers(status(503, "Retry-After: 60"), status(200))
    other = queued(line.webhook, happened(line.plan))
    assert (line.deliver(), line.deliver(), list(due())) == (0, 0, [])
    make_due(other)
    assert line.deliver() == 1


BROKEN = {
    "hang": "timeout",
    "drip-body": "deadline",
    "drip-head": "deadline",
    "drip-hints": "deadline",
    "read-then-close": "closed",
    "read-then-reset": "reset",
    "cut-in-header": "truncated",
    "short-content-length": "truncated",
    "garbage": "malformed",
    "http-0.9": "truncated",
    "switching-101": "malformed",
    "two-lengths": "malformed",
    "big-header": "too-large",
    "big-with-length": "too-large",
    "big-length-only": "too-large",
    "big-chunked": "too-large",
    "big-without-length": "too-large",
}


@pytest.fixture
def _short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "READ_SECONDS", 0.3)
    monkeypatch.setattr(webhooks, "TOTAL_SECONDS", 0.6)


@pytest.mark.usefixtures("_short_deadlines")
@pytest.mark.parametrize("mode", BROKEN)
def test_half_an_answer_is_none(line: Line, mode: str) -> None:
    line.receiver.play(mode)
    began = time.monotonic()
    assert line.deliver() == 0
    assert time.monotonic() - began < 5
    assert line.log() == [("no_answer", None)]
    assert line.fault().startswith(BROKEN[mode])
    assert wait_of(line.delivery) == pytest.approx(timedelta(seconds=5), abs=SECOND)


KIB_64 = b"x" * 65_536


@pytest.mark.parametrize(
    ("pieces", "delivered"),
    [
        ([whole("200 OK", KIB_64)], 1),
        ([whole("200 OK", KIB_64 + b"x")], 0),
        ([CHUNKED, chunk(KIB_64), b"0\r\n\r\n"], 1),
        ([CHUNKED, chunk(KIB_64), chunk(b"x"), b"0\r\n\r\n"], 0),
        ([head() + KIB_64], 1),
        ([head() + KIB_64 + b"x"], 0),
    ],
)
def test_64_kib_of_an_answer_are_read(line: Line, pieces: list[bytes], delivered: int) -> None:
    line.receiver.answers(Mode(pieces))
    assert line.deliver() == delivered
    assert ("larger than 64 KiB" in line.fault()) is not bool(delivered)


def test_nothing_of_an_answer_is_kept(line: Line) -> None:
    line.receiver.answers(status(418, "X-Inside: secret", body=b"secret"))
    line.deliver()
    attempt = line.delivery.attempts.get()
    assert "secret" not in " ".join(str(value) for value in vars(attempt).values())


def test_nobody_listens(line: Line) -> None:
    Webhook.objects.update(url=f"http://127.0.0.1:{refused_port()}/")
    assert line.deliver() == 0
    assert line.log() == [("not_sent", None)]
    assert line.fault() == "connect: Connection refused"


def test_dripping_is_not_an_answer_however_it_begins(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FM-8: the deadline is a wall clock."""
    monkeypatch.setattr(webhooks, "TOTAL_SECONDS", 0.4)
    line.receiver.answers(dripped(whole("200 OK", b"x" * 500)))
    assert line.deliver() == 0
    assert line.fault().startswith("deadline")

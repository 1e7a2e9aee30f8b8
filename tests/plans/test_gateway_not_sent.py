"""T-5, FM-1, SEC-15 and SEC-17: what ends a call before its first byte, and proves it not sent."""

import socket
import time

import pytest

from plans.gateway import Call, Endpoint, NoAnswer, NotSent, exchange
from tests.faults.calls import COMMIT, endpoint
from tests.faults.raw_target import RawTarget, refused_port


def test_a_refused_connection_is_not_sent() -> None:
    result = exchange(endpoint(f"http://127.0.0.1:{refused_port()}"), COMMIT)
    assert isinstance(result, NotSent)
    assert (result.reason, result.detail) == ("connect", "Connection refused")


def test_a_connection_that_never_stands_is_not_sent() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            result = exchange(endpoint(f"http://127.0.0.1:{port}", connect_timeout=0.2), COMMIT)
    assert result == NotSent("connect", "no connection in time")


def test_an_unknown_name_is_not_sent() -> None:
    result = exchange(endpoint("http://no-such-name.invalid"), COMMIT)
    assert isinstance(result, NotSent)
    assert result.reason == "dns"


@pytest.mark.parametrize(
    "base_url",
    [
        "https://127.0.0.1",
        "https://localhost",
        "https://[::ffff:169.254.169.254]",
        "https://2130706433",
        "https://good@evil.example",
        "http://billing.example",
    ],
)
def test_a_target_outside_never_reaches_inside(base_url: str) -> None:
    result = exchange(Endpoint(base_url, internal=False), COMMIT)
    assert isinstance(result, NotSent)
    assert result.reason == "address-blocked"


def test_a_name_that_turned_local_is_blocked_at_the_send(monkeypatch: pytest.MonkeyPatch) -> None:
    with RawTarget("ok") as target:
        flipped = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", target.port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: flipped)
        result = exchange(Endpoint("https://billing.example", internal=False), COMMIT)
        assert (isinstance(result, NotSent), target.connections) == (True, 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"headers": {"Idempotency-Key": "a\r\nX: y"}},
        {"headers": {"Idempotency-Key": "a\n"}},
        {"headers": {"Idempotency-Key": "é"}},
        {"headers": {"X\r\nY": "a"}},
        {"headers": {"": "a"}},
        {"headers": {"HOST": "evil.example"}},
        {"headers": {"Authorization": "Bearer other"}},
        {"headers": {"Transfer-Encoding": "chunked"}},
        {"headers": {"Content-Length": "0"}},
        {"headers": {"Accept-Encoding": "gzip"}},
        {"path": "/a b"},
        {"path": "/a\r\nX: y"},
        {"path": "//evil.example/"},
        {"path": "http://evil.example/"},
        {"path": "/a#b"},
        {"path": ""},
        {"method": "GET /x HTTP/1.1\r\n"},
        {"method": "get"},
    ],
)
def test_a_request_that_could_be_read_as_two_is_not_sent(changes: dict[str, object]) -> None:
    parts: dict[str, object] = {"method": "POST", "path": "/a", "headers": {}} | changes
    with RawTarget("ok") as target:
        result = exchange(endpoint(target.base_url), Call(**parts))  # type: ignore[arg-type]
        assert target.connections == 0
    assert isinstance(result, NotSent)
    assert result.reason == "invalid-request"


def test_a_credential_with_a_line_break_is_not_sent_and_not_shown() -> None:
    bad = Endpoint("http://127.0.0.1:1", internal=True, credential="cred\r\nX: y")
    result = exchange(bad, COMMIT)
    assert isinstance(result, NotSent)
    assert result.reason == "invalid-request"
    assert "cred" not in repr(result)


def test_a_deadline_that_has_passed_sends_nothing() -> None:
    with RawTarget("ok") as target:
        result = exchange(endpoint(target.base_url), COMMIT, deadline=time.monotonic() - 1)
        assert (isinstance(result, NotSent), target.connections) == (True, 0)


def test_a_deadline_that_passes_between_connection_and_first_byte_sends_nothing() -> None:
    with RawTarget("read-then-close") as target:
        result = exchange(
            endpoint(target.base_url, total_timeout=0.2),
            COMMIT,
            on_connected=lambda: time.sleep(0.3),
        )
    assert isinstance(result, NotSent)
    assert b"".join(target.requests) == b""


def test_what_the_last_check_raises_stops_the_send() -> None:
    class LeaseLost(Exception):
        pass

    def check() -> None:
        raise LeaseLost

    with RawTarget("read-then-close") as target, pytest.raises(LeaseLost):
        exchange(endpoint(target.base_url), COMMIT, on_connected=check)
    assert b"".join(target.requests) == b""


def test_the_callers_deadline_shortens_the_total_time() -> None:
    with RawTarget("hang") as target:
        started = time.monotonic()
        slow = endpoint(target.base_url, read_timeout=30, total_timeout=45)
        result = exchange(slow, COMMIT, deadline=started + 0.2)
        assert time.monotonic() - started < 10
    assert isinstance(result, NoAnswer)
    assert result.reason == "deadline"


def test_a_target_that_does_not_read_cannot_hold_the_send() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        started = time.monotonic()
        result = exchange(endpoint(url, read_timeout=0.2), Call("POST", "/a", b"x" * 16_000_000))
        assert time.monotonic() - started < 10
    assert isinstance(result, NoAnswer)
    assert result.reason == "timeout"

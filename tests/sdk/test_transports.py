"""Bare sockets that break off, drip and lie: within the deadline there is one of three answers."""

from __future__ import annotations

import asyncio
import gc
import ssl
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from countersign_agent import Answer, Exchange, NoAnswer, NotSent, transports
from countersign_agent.exchanges import Request
from countersign_agent.transports import AsyncHttpPort, HttpPort
from tests.faults.raw_target import MODES, Mode, RawTarget, refused_port, whole

SECONDS = 0.6
# These the library under us reads with more patience than a gateway would.
LENIENT = {
    *("space-in-header-name", "folded-header", "two-lengths", "length-and-chunks"),
    *("no-colon-in-header", "bare-lf-in-header", "bare-cr-in-header", "nul-in-header"),
    *(
        "many-headers",
        "hex-prefixed-chunk",
        "signed-length",
        "http-2",
        "http-0.9",
        "cut-in-trailer",
    ),
    *("switching-101", "big-header", "ok-after-hints", "drip-hints", "early-413"),
}
WHOLE = {
    *("ok", "ok-dated", "ok-hour-off", "ok-odd-date", "ok-kept-open", "ok-chunked"),
    *("ok-chunk-extension", "ok-without-length", "ok-twice-named", "ok-replayed", "html-200"),
    *("empty-200", "empty-204", "redirect-307", "conflict-409", "bare-409", "in-progress-409"),
    *("late-410", "refused-422", "busy-429", "down-503", "cut-without-length"),
}


def in_a_thread(request: Request) -> Exchange:
    port = HttpPort()
    try:
        return port.send(request)
    finally:
        port.close()


def on_the_loop(request: Request) -> Exchange:
    async def send() -> Exchange:
        port = AsyncHttpPort()
        try:
            return await port.send(request)
        finally:
            await port.close()

    return asyncio.run(send())


ports = pytest.mark.parametrize("send", [in_a_thread, on_the_loop])


def request(url: str, seconds: float = SECONDS) -> Request:
    body = b'{"plan_token":"tok_secret_secret"}'
    return Request("POST", url, {"Content-Type": "application/json"}, body, seconds)


@ports
@pytest.mark.parametrize("mode", sorted(set(MODES) - LENIENT - {"ok-then-reset"}))
def test_a_broken_answer_is_none_and_in_time(
    send: Callable[[Request], Exchange], mode: str
) -> None:
    with RawTarget(mode) as target:
        begun = time.monotonic()
        exchange = send(request(f"{target.base_url}/commit"))
        took = time.monotonic() - begun
    assert took < SECONDS + 1.5
    assert isinstance(exchange, Answer if mode in WHOLE else NoAnswer), exchange


@ports
@pytest.mark.parametrize("mode", sorted(LENIENT))
def test_a_strange_answer_is_never_proof_that_nothing_was_sent(
    send: Callable[[Request], Exchange], mode: str
) -> None:
    with RawTarget(mode) as target:
        assert not isinstance(send(request(f"{target.base_url}/commit")), NotSent)


@ports
def test_nobody_there_means_not_sent(send: Callable[[Request], Exchange]) -> None:
    assert isinstance(send(request(f"http://127.0.0.1:{refused_port()}/")), NotSent)


@ports
def test_a_name_that_leads_nowhere_means_not_sent(send: Callable[[Request], Exchange]) -> None:
    assert isinstance(send(request("http://nowhere.invalid/", 10.0)), NotSent)


@ports
def test_what_is_compressed_although_it_must_not_be_is_no_answer(
    send: Callable[[Request], Exchange],
) -> None:
    with RawTarget() as target:
        target.modes = deque([Mode([whole("200 OK", b"{}", "Content-Encoding: gzip")])])
        assert isinstance(send(request(target.base_url)), NoAnswer)
        assert b"accept-encoding: identity" in target.requests[0].lower()


def test_ports_read_the_certificates_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    create = httpx.create_ssl_context

    def counted(verify: bool, **options: Any) -> ssl.SSLContext:
        read.append(verify)
        return create(verify, **options)

    monkeypatch.setattr(httpx, "create_ssl_context", counted)
    transports._usual_tls.cache_clear()
    for make in (HttpPort, AsyncHttpPort):
        for verify in (True, False, True):
            make(verify)
    assert read == [True, False]


def test_a_callers_own_certificates_end_with_its_ports() -> None:
    own = ssl.create_default_context()
    HttpPort(own).close()
    gone = weakref.ref(own)
    del own
    gc.collect()
    assert gone() is None

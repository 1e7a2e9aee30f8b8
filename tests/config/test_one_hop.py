"""The hop into a thread: whole answers, long ones, and clients that go away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from config.one_hop import OneHopHandler

SCOPE = {
    "type": "http",
    "method": "GET",
    "path": "/",
    "query_string": b"",
    "headers": [(b"host", b"localhost")],
}


class OneHop(OneHopHandler):
    """Answers with what the test made, in place of Django's views."""

    def __init__(self, response: HttpResponseBase) -> None:
        super().__init__(threads=2)
        self.response = response
        self.threads: list[str] = []

    def get_response(self, request: HttpRequest) -> Any:
        self.threads.append(threading.current_thread().name)
        return self.response


def run(handler: OneHopHandler, hang_up_after: int = 1000, **scope: Any) -> list[dict[str, Any]]:
    """What was sent. The client goes away after so many messages."""

    async def call() -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []
        gone = asyncio.Event()
        first = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> dict[str, Any]:
            if first:
                return first.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)
            if len(sent) == hang_up_after:
                gone.set()

        await handler(SCOPE | scope, receive, send)
        return sent

    return asyncio.run(asyncio.wait_for(call(), 20))


def test_an_answer_has_its_headers_and_cookies() -> None:
    response = HttpResponse("body", status=201, headers={"X-One": "1"})
    response.set_cookie("a", "b")
    start, body = run(OneHop(response))
    assert (start["status"], body["body"]) == (201, b"body")
    assert (b"X-One", b"1") in start["headers"]
    assert (b"Set-Cookie", b"a=b; Path=/") in start["headers"]


def test_signals_and_views_share_one_of_the_few_threads() -> None:
    """The connection that a view took is given back where it was taken."""
    seen: list[str] = []

    def note(**_: Any) -> None:
        seen.append(threading.current_thread().name)

    request_started.connect(note)
    request_finished.connect(note)
    try:
        handler = OneHop(HttpResponse("body"))
        run(handler)
    finally:
        request_started.disconnect(note)
        request_finished.disconnect(note)
    assert seen == handler.threads * 2
    assert seen[0].startswith("request")


def test_a_long_answer_is_sent_in_parts_and_ended() -> None:
    sent = run(OneHop(StreamingHttpResponse(iter([b"one", b"two"]))))
    assert [message.get("body") for message in sent[1:]] == [b"one", b"two", None]
    assert [message.get("more_body", False) for message in sent[1:]] == [True, True, False]


def test_a_client_that_goes_away_ends_a_long_answer() -> None:
    ended = threading.Event()

    def endless() -> Iterator[bytes]:
        try:
            while True:
                yield b"more"
        finally:
            ended.set()

    sent = run(OneHop(StreamingHttpResponse(endless())), hang_up_after=3)
    assert ended.is_set()
    assert len(sent) < 1000


def test_a_fault_in_the_middle_of_an_answer_is_not_its_end() -> None:
    def breaks() -> Iterator[bytes]:
        yield b"one"
        raise RuntimeError("in the middle")

    response = StreamingHttpResponse(breaks())
    with pytest.raises(RuntimeError, match="in the middle"):
        run(OneHop(response))
    assert response.closed

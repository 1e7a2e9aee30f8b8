"""Which requests to the server are made again, for how long, and what an answer must be like."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from countersign_agent import AsyncClient, Client, Refused, Unanswered, UnexpectedAnswer
from countersign_agent.errors import RateLimited, ServerAway, ServerFault, TooManyPending
from tests.faults.raw_target import Mode, RawTarget, refused_port, whole
from tests.sdk.overhearing import Blocking

KEY = "cs_key_of_the_tests"


def problem(status: str, code: str, *headers: str, next_action: str = "retry_same") -> Mode:
    body = {"code": code, "detail": "No.", "next_action": next_action}
    return Mode([whole(status, json.dumps(body).encode(), *headers)])


OK = Mode([whole("200 OK", b'{"items":[],"next":null,"abandoned":[],"in_flight":[]}')])
AWAY = problem("503 Service Unavailable", "database-away", "Retry-After: 0")
BUSY = problem("429 Too Many Requests", "rate-limited", "Retry-After: 1")
FULL = problem("429 Too Many Requests", "too-many-pending", next_action="wait")
BROKEN = problem("500 Internal Server Error", "internal-error", next_action="investigate")
GATEWAY = Mode([whole("502 Bad Gateway", b"<html>")])
CLOSED = Mode()
SILENT = Mode(end="hang")
DRIPPING = Mode([whole("200 OK", b"x" * 999)[:20], *[b" "] * 400], pause=0.03)


def read(client: Any) -> Any:
    return client.list_plans()


def end(client: Any) -> Any:
    return client.end_task("t")


def ask(client: Any) -> Any:
    return client.open_intent(target="b", operation="o", task_id="t", inputs={"a": 1})


@pytest.fixture(params=[Client, AsyncClient], ids=["threads", "event loop"])
def opened(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Makes clients, and closes them."""
    with asyncio.Runner() as runner:
        made: list[Any] = []

        def open_client(url: str, seconds: float = 20.0) -> Any:
            client = request.param(url, KEY, seconds=seconds)
            made.append(client if request.param is Client else Blocking(client, runner))
            return made[-1]

        yield open_client
        for client in made:
            client.close()


@pytest.mark.parametrize(
    ("verb", "answers", "requests"),
    [
        (read, [OK], 1),
        (read, [GATEWAY, CLOSED, AWAY, OK], 4),
        (end, [GATEWAY, CLOSED, AWAY, OK], 4),
        (ask, [AWAY, BUSY, FULL], 3),
        (ask, [GATEWAY], 1),
        (ask, [CLOSED], 1),
        (read, [FULL], 1),
        (read, [BROKEN], 1),
        (end, [BROKEN], 1),
    ],
)
def test_a_request_is_made_again_only_where_that_is_harmless(
    opened: Callable[..., Any], verb: Callable[[Any], Any], answers: list[Mode], requests: int
) -> None:
    raised = {id(FULL): TooManyPending, id(BROKEN): ServerFault}
    with RawTarget() as server:
        server.modes = deque(answers)
        client = opened(server.base_url)
        if answers[-1] is OK:
            verb(client)
        else:
            with pytest.raises(raised.get(id(answers[-1]), Unanswered)):
                verb(client)
        assert len(server.requests) == requests
        assert len({each.partition(b"\r\n\r\n")[2] for each in server.requests}) == 1


def test_it_waits_as_long_as_it_is_told(opened: Callable[..., Any]) -> None:
    with RawTarget() as server:
        server.modes = deque([BUSY, OK])
        begun = time.monotonic()
        read(opened(server.base_url))
        assert time.monotonic() - begun >= 1


@pytest.mark.parametrize("mode", [GATEWAY, CLOSED, SILENT, DRIPPING])
def test_a_call_is_over_at_its_deadline(opened: Callable[..., Any], mode: Mode) -> None:
    with RawTarget() as server:
        server.modes = deque([mode])
        begun = time.monotonic()
        with pytest.raises(Unanswered) as unanswered:
            read(opened(server.base_url, 1.2))
        assert time.monotonic() - begun < 10
        assert unanswered.value.may_have_arrived
        assert unanswered.value.next_action == "retry_same"


@pytest.mark.parametrize(("mode", "kind"), [(AWAY, ServerAway), (BUSY, RateLimited)])
def test_a_refusal_that_outlasts_the_deadline_is_told(
    opened: Callable[..., Any], mode: Mode, kind: type[Refused]
) -> None:
    with RawTarget() as server:
        server.modes = deque([mode])
        with pytest.raises(kind) as refused:
            read(opened(server.base_url, 3.0))
        assert refused.value.next_action == "retry_same"


def test_a_server_that_is_not_there_was_not_told_anything(opened: Callable[..., Any]) -> None:
    with pytest.raises(Unanswered) as unanswered:
        ask(opened(f"http://127.0.0.1:{refused_port()}", 1.0))
    assert not unanswered.value.may_have_arrived


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'{"items":[]}', b'{"items":{},"next":1}', b'{"items":[{}],"next":""}'],
)
def test_an_answer_of_another_kind_is_no_answer(opened: Callable[..., Any], body: bytes) -> None:
    with RawTarget() as server:
        server.modes = deque([Mode([whole("200 OK", body)])])
        with pytest.raises(UnexpectedAnswer):
            read(opened(server.base_url))


def test_the_key_is_in_the_header_and_nowhere_else(opened: Callable[..., Any]) -> None:
    with RawTarget() as server:
        server.modes = deque([OK])
        client = opened(server.base_url)
        read(client)
        assert server.requests[0].count(KEY.encode()) == 1
        assert f"authorization: bearer {KEY}".encode() in server.requests[0].lower()
        assert KEY not in f"{client!r}{vars(client)!r}{vars(client.core)!r}"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("ftp://example.com", KEY),
        ("http://user:secret@example.com", KEY),
        ("example.com", KEY),
        ("http://example.com?x=1", KEY),
        ("http://example.com", "cs_with\nnewline"),
        ("http://example.com", ""),
        ("http://example.com", "cs_schlüssel"),
    ],
)
def test_an_address_or_key_that_cannot_be_one_is_refused(url: str, key: str) -> None:
    with pytest.raises(ValueError, match=r"server|key") as refused:
        Client(url, key)
    assert "secret" not in str(refused.value)

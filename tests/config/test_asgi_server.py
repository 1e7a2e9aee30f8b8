"""Long polls against a real server, with its threads and connections counted (A-5)."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from pytest_django import DjangoDbBlocker

from audit.models import ClockTimestamp
from plans.lifecycle import Verb
from plans.models import Agent, ApiKey, Operation, Plan
from tests.config.long_polls import follow, follow_and_close, later, submitted, wait
from tests.config.web_process import Server
from tests.plans.api_calls import TOKEN, submission

pytestmark = pytest.mark.django_db(transaction=True)
WAITERS = 300


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory,
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("web") / "server.log"
    with django_db_blocker.unblock():
        server = Server(log)
    yield server
    server.stop()
    assert TOKEN not in log.read_text()


@pytest.fixture
def web(server: Server, api_key: str, refund: Operation) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {api_key}"}
    with httpx.Client(base_url=f"{server.url}/api/v1", headers=headers, timeout=40) as client:
        yield client


def test_without_a_tag_it_answers_at_once(web: httpx.Client) -> None:
    submitted(web)
    began = time.monotonic()
    answer = web.get("/plans/billing/pl_1", headers={"Prefer": "wait=20"})
    assert answer.status_code == 200
    assert "Preference-Applied" not in answer.headers
    assert time.monotonic() - began < 10


def test_it_waits_for_a_change(web: httpx.Client) -> None:
    tag = submitted(web).headers["ETag"]
    body = {"reason": "other"}
    later(1.0, lambda: web.post("/plans/billing/pl_1/abandonment", json=body))
    answer, took = wait(web, "/plans/billing/pl_1", tag)
    assert (answer.status_code, answer.json()["status"]) == (200, "abandoned")
    assert answer.headers["Preference-Applied"] == "wait=20"
    assert 0.9 < took < 10


def test_an_intent_waits_too(web: httpx.Client) -> None:
    intent = submitted(web).json()["links"]["intent"]
    tag = web.get(intent).headers["ETag"]
    later(0.5, lambda: web.post("/plans", json=submission("pl_2", replaces="pl_1")))
    answer, took = wait(web, intent, tag)
    assert (answer.status_code, answer.json()["plan"]["plan_id"]) == (200, "pl_2")
    assert took < 10


def test_the_end_of_the_wait_is_a_304(web: httpx.Client) -> None:
    tag = submitted(web).headers["ETag"]
    later(0.3, lambda: submitted(web, "pl_2"))
    answer, took = wait(web, "/plans/billing/pl_1", tag, seconds=1)
    assert (answer.status_code, answer.headers["ETag"]) == (304, tag)
    assert answer.headers["Preference-Applied"] == "wait=1"
    assert 0.9 < took < 10


def test_a_change_that_commits_late_wakes_too(web: httpx.Client) -> None:
    """Its event has a lower ID and a lower transaction than others that were seen before it."""
    tag = submitted(web).headers["ETag"]
    answers: list[tuple[httpx.Response, float]] = []
    waiting = threading.Thread(
        target=lambda: answers.append(wait(web, "/plans/billing/pl_1", tag)), daemon=True
    )
    waiting.start()
    time.sleep(0.5)
    with transaction.atomic():
        follow("pl_1", Verb.VERIFY)
        submitted(web, "pl_2")
        time.sleep(1.0)
        submitted(web, "pl_3")
        assert not answers
    committed = time.monotonic()
    waiting.join(10)
    assert answers[0][0].json()["status"] == "pending"
    assert time.monotonic() - committed < 10


def test_a_key_that_is_revoked_meanwhile_learns_nothing(web: httpx.Client) -> None:
    tag = submitted(web).headers["ETag"]

    def revoke_and_change() -> None:
        try:
            ApiKey.objects.update(revoked_at=ClockTimestamp())
            follow("pl_1", Verb.VERIFY)
        finally:
            connection.close()

    later(0.7, revoke_and_change)
    answer, took = wait(web, "/plans/billing/pl_1", tag)
    assert answer.status_code == 401
    assert took < 5


def test_three_hundred_wait_without_threads_or_connections(
    server: Server, web: httpx.Client
) -> None:
    tag = submitted(web).headers["ETag"]
    for _ in range(5):
        web.get("/plans/billing/pl_1")
    before = server.threads

    async def waits() -> tuple[list[httpx.Response], int, int, float]:
        limits = httpx.Limits(max_connections=WAITERS, max_keepalive_connections=0)
        headers = {**web.headers, "If-None-Match": tag, "Prefer": "wait=30"}
        url = f"{server.url}/api/v1/plans/billing/pl_1"
        async with httpx.AsyncClient(limits=limits, headers=headers, timeout=60) as client:
            waiting = [asyncio.ensure_future(client.get(url)) for _ in range(WAITERS)]
            await asyncio.to_thread(server.come_to_rest, WAITERS, before + 3)
            assert not any(request.done() for request in waiting)
            threads, connections = await asyncio.to_thread(counts)
            began = time.monotonic()
            await asyncio.to_thread(follow_and_close, "pl_1")
            answers = await asyncio.gather(*waiting)
            return answers, threads, connections, time.monotonic() - began

    def counts() -> tuple[int, int]:
        try:
            return server.threads, server.connections
        finally:
            connection.close()

    answers, threads, connections, took = asyncio.run(waits())
    assert {(a.status_code, a.json()["status"]) for a in answers} == {(200, "pending")}
    # One thread looks at the trail for all of them, with one connection; the slots of requests
    # that are being answered may still have theirs. Nobody has one for waiting.
    assert threads <= before + 3 + settings.API_CONCURRENCY
    assert connections <= 16
    # Woken, and not run out.
    assert took < 25
    print(
        f"{WAITERS} waiters: {threads - before:+} threads, {connections} connections, {took:.1f} s"
    )


@pytest.fixture
def other_web(server: Server, dana: User, make_api_key: Callable[..., str]) -> Iterator[Any]:
    """Another agent's client."""
    key = make_api_key(Agent.objects.create(name="other-agent", owner=dana, rate_tokens=600))
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"{server.url}/api/v1", headers=headers, timeout=40) as client:
        yield client


def test_the_feed_waits_for_the_next_event(web: httpx.Client) -> None:
    submitted(web)
    end = web.get("/events").json()["next"]
    later(0.7, lambda: follow_and_close("pl_1"))
    began = time.monotonic()
    page = web.get("/events", params={"after": end}, headers={"Prefer": "wait=20"})
    assert [item["to"] for item in page.json()["items"]] == ["pending"]
    assert 0.6 < time.monotonic() - began < 5
    again = web.get("/events", params={"after": end}, headers={"Prefer": "wait=20"})
    assert again.json() == page.json()


def test_an_empty_feed_comes_at_the_end_of_the_wait(
    web: httpx.Client, other_web: httpx.Client
) -> None:
    end = web.get("/events").json()["next"]
    later(0.3, lambda: submitted(other_web))
    page = web.get("/events", params={"after": end}, headers={"Prefer": "wait=1"})
    assert page.json() == {"items": [], "next": end}


def test_a_claim_waits_for_work(web: httpx.Client) -> None:
    submitted(web)
    follow_and_close("pl_1")
    none = web.post("/replans/claim", json={}, headers={"Prefer": "wait=1"})
    assert (none.status_code, none.headers["Preference-Applied"]) == (204, "wait=1")
    later(0.7, lambda: follow_and_close("pl_1", Verb.REQUEST_CHANGES))
    began = time.monotonic()
    work = web.post("/replans/claim", json={}, headers={"Prefer": "wait=20"})
    assert (work.status_code, work.json()["cause"]) == (200, "changes_requested")
    assert time.monotonic() - began < 5


def test_plans_and_feeds_of_two_agents_wait_side_by_side(
    server: Server, web: httpx.Client, other_web: httpx.Client
) -> None:
    """Each of those whom it concerns is told once; the others find nothing at their end."""
    plan, other = submitted(web), submitted(other_web, "pl_other")
    waits = {
        (web, plan): ("/plans/billing/pl_1", web.get("/events").json()["next"]),
        (other_web, other): ("/plans/billing/pl_other", other_web.get("/events").json()["next"]),
    }
    before = server.threads

    async def all_wait() -> tuple[list[list[httpx.Response]], int]:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx.AsyncClient(limits=limits, timeout=60) as client:
            groups = []
            for (whose, row), (path, end) in waits.items():
                # Nothing comes to the others: their wait ends by itself.
                prefer = "wait=30" if whose is web else "wait=10"
                headers = {**whose.headers, "Prefer": prefer}
                known = {"If-None-Match": row.headers["ETag"]}
                feed = f"{whose.base_url}events?after={end}"
                calls = ((f"{whose.base_url}{path[1:]}", headers | known), (feed, headers))
                groups += [
                    [asyncio.ensure_future(client.get(url, headers=sent)) for _ in range(25)]
                    for url, sent in calls
                ]
            await asyncio.to_thread(server.come_to_rest, 100, before + 3)
            threads = server.threads
            await asyncio.to_thread(follow_and_close, "pl_1")
            return [list(await asyncio.gather(*group)) for group in groups], threads

    (plans, feeds, other_plans, other_feeds), threads = asyncio.run(all_wait())
    assert {(a.status_code, a.json()["status"]) for a in plans} == {(200, "pending")}
    assert {tuple(i["to"] for i in a.json()["items"]) for a in feeds} == {("pending",)}
    assert {a.status_code for a in other_plans} == {304}
    assert {len(a.json()["items"]) for a in other_feeds} == {0}
    assert threads <= before + 3 + settings.API_CONCURRENCY


def test_a_large_body_is_refused_before_it_is_read(server: Server, web: httpx.Client) -> None:
    big = b"x" * 10_000_000
    for content in (big, iter([big[:65_536]] * 150)):
        answer = web.post("/plans", content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (413, "body-too-large")


def test_hidden_slashes_and_long_headers_lead_nowhere(server: Server, web: httpx.Client) -> None:
    submitted(web)
    authorization = web.headers["Authorization"]
    body = b'{"reason":"other"}'
    for path, statuses in {
        "/api/v1/plans/billing/pl_1%2Fabandonment": {404},
        "/api/v1/plans/billing/pl_1/abandonment%00": {404},
        "/api/v1/plans/billing/../billing/pl_1/abandonment": {404},
        "//api/v1/plans": {403},
        "/API/v1/plans": {403},
    }.items():
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {authorization}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        assert raw(server.port, head.encode() + body) in statuses
    huge = f"GET /api/v1/plans HTTP/1.1\r\nHost: x\r\nX-Junk: {'x' * 200_000}\r\n\r\n"
    assert raw(server.port, huge.encode()) in {400, 431}
    assert Plan.objects.get().status == "verifying"


def raw(port: int, request: bytes) -> int:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
        peer.sendall(request)
        return int(peer.recv(4096).split()[1])

"""Streams of hints from a real server: what they cost, and when they end (4-screens, Q-1)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.test import Client
from pytest_django import DjangoDbBlocker

from audit.actors import CLOCK
from plans.lifecycle import Verb, transition
from plans.models import Plan
from tests.approvals.paper_plans import MakePlan, maker
from tests.config.web_process import Server, hasty

pytestmark = pytest.mark.django_db(transaction=True)
DESKS = 60


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory,
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Server]:
    with hasty(tmp_path_factory, django_db_blocker) as server:
        yield server


@pytest.fixture
def make_plan(refund: object, support_agent: object) -> MakePlan:
    return maker(refund, support_agent)  # type: ignore[arg-type]


class Stream:
    """One desk's stream, read event by event."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.lines = answer.iter_lines()

    def until(self, event: str) -> str:
        """The data of the next such event; "" if the stream ends before."""
        for line in self.lines:
            if line == f"event: {event}":
                return next(self.lines).removeprefix("data: ") or "-"
        return ""


@pytest.fixture
def sign_in(server: Server) -> Callable[[User], str]:
    def sign_in(person: User) -> str:
        client = Client()
        client.force_login(person)
        return (
            f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
        )

    return sign_in


@contextmanager
def listening(server: Server, cookie: str, age: int = 0) -> Iterator[Stream]:
    url = f"{server.url}/hints/?age={age}"
    with httpx.stream("GET", url, headers={"Cookie": cookie}, timeout=20) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert answer.headers["Cache-Control"] == "no-store"
        stream = Stream(answer)
        assert stream.until("open")
        yield stream


def abandon(plan: Plan) -> None:
    with transaction.atomic():
        transition(Plan.objects.locked(plan.pk), Verb.ABANDON, actor=CLOCK)


def test_a_change_is_told_after_its_commit(
    server: Server, sign_in: Callable[[User], str], ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    with listening(server, sign_in(ada)) as desk:
        desk.until("beat")
        with transaction.atomic():
            transition(Plan.objects.locked(plan.pk), Verb.ABANDON, actor=CLOCK)
            time.sleep(0.5)
        committed = time.monotonic()
        assert desk.until("plan") == str(plan.intent_id)
        assert time.monotonic() - committed < 5


def test_other_peoples_targets_are_not_told_of(
    server: Server, sign_in: Callable[[User], str], charlie: User, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    with listening(server, sign_in(ada)) as ours, listening(server, sign_in(charlie)) as theirs:
        ours.until("beat")
        theirs.until("beat")
        abandon(plan)
        assert ours.until("plan") == str(plan.intent_id)
        # The first look of a process may tell everybody to look; it names no plan.
        heard = [next(theirs.lines) for _ in range(6)]
        assert not any(str(plan.intent_id) in line for line in heard)


@pytest.mark.parametrize("how", ["signed out", "switched off"])
def test_the_stream_of_somebody_who_may_not_listen_any_more_ends(
    server: Server, sign_in: Callable[[User], str], ada: User, how: str
) -> None:
    with listening(server, sign_in(ada)) as desk:
        if how == "signed out":
            Session.objects.all().delete()
        else:
            User.objects.filter(pk=ada.pk).update(is_active=False)
        began = time.monotonic()
        assert desk.until("over")
        assert desk.until("queue") == ""
        assert time.monotonic() - began < 5


def test_nobody_gets_a_stream_without_a_session(server: Server) -> None:
    answer = httpx.get(f"{server.url}/hints/", headers={"Accept": "text/event-stream"})
    assert (answer.status_code, answer.text) == (204, "")
    assert "location" not in answer.headers


def test_desks_hold_neither_threads_nor_connections(
    server: Server, sign_in: Callable[[User], str], ada: User, make_plan: MakePlan
) -> None:
    plan, cookie = make_plan(), sign_in(ada)
    with ExitStack() as open_desks:
        first = open_desks.enter_context(listening(server, cookie))
        first.until("beat")
        threads, connections = server.threads, server.connections
        with ThreadPoolExecutor(8) as pool:
            desks = list(
                pool.map(
                    lambda _: open_desks.enter_context(listening(server, cookie)), range(DESKS)
                )
            )
        # Those who asked for a stream were served by threads of the fixed few.
        server.come_to_rest(DESKS + 1, threads + 1)
        assert server.threads <= threads + settings.API_CONCURRENCY
        assert server.connections <= connections + settings.API_CONCURRENCY
        abandon(plan)
        told = [desk.until("plan") for desk in (first, *desks)]
        assert set(told) == {str(plan.intent_id)}


def test_a_server_that_stops_does_not_wait_for_its_desks(
    server: Server, sign_in: Callable[[User], str], ada: User
) -> None:
    with listening(server, sign_in(ada)) as desk:
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 5
        assert desk.until("never") == ""
    server.start()
    with listening(server, sign_in(ada)) as desk:
        assert desk.until("beat")

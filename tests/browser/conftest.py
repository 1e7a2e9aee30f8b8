"""A real Chromium on the real pages; `tests/chromium.py` says what happens without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from plans.models import Agent, Operation
from tests.approvals.paper_plans import MakePlan, maker
from tests.chromium import launched

DESK = {"width": 1280, "height": 900}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/browser/" in item.nodeid:
            item.add_marker("browser")


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """One for all files: a new context shares nothing with the others, and costs far less."""
    with launched() as browser:
        yield browser


@pytest.fixture
def site(live_server: LiveServer) -> str:
    """Where the product is; a file that needs a server of its own names another place."""
    return str(live_server.url)


@pytest.fixture
def open_browser(chromium: Browser, site: str) -> Iterator[Callable[..., BrowserContext]]:
    """`open_browser(person, **options)`: a browser in which the person is signed in."""
    opened: list[BrowserContext] = []

    def open_one(person: User, **options: Any) -> BrowserContext:
        options = {"viewport": DESK, "base_url": site} | options
        context = chromium.new_context(**options)
        opened.append(context)
        client = Client()
        client.force_login(person)
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": site}])
        context.set_default_timeout(10_000)
        # The first page of a server compiles every template.
        context.set_default_navigation_timeout(30_000)
        expect.set_options(timeout=15_000)
        return context

    yield open_one
    for context in opened:
        context.close()


@pytest.fixture
def desk(open_browser: Callable[..., BrowserContext], ada: User) -> Page:
    """Ada at her desk."""
    return open_browser(ada).new_page()


@pytest.fixture
def make_plan(refund: Operation, support_agent: Agent) -> MakePlan:
    """As in tests/approvals."""
    return maker(refund, support_agent)

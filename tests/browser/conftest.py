"""A real Chromium on the real pages; without one these tests are not collected.

`REQUIRE_BROWSER=1` turns a missing Chromium into a failure of the run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright
from pytest_django.live_server_helper import LiveServer

from plans.models import Agent, Operation
from tests.approvals.paper_plans import MakePlan, maker

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK = {"width": 1280, "height": 900}

if CHROMIUM is None:
    if os.environ.get("REQUIRE_BROWSER") == "1":
        raise pytest.UsageError("REQUIRE_BROWSER=1, but there is no Chromium: apt install chromium")
    collect_ignore_glob = ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/browser/" in item.nodeid:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """Playwright's loop runs in this thread, where Django would refuse its own queries."""
    patch = pytest.MonkeyPatch()
    patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    with sync_playwright() as started:
        yield started
    patch.undo()


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
    yield browser
    browser.close()


@pytest.fixture
def open_browser(
    chromium: Browser, live_server: LiveServer
) -> Iterator[Callable[..., BrowserContext]]:
    """`open_browser(person, **options)`: a browser in which the person is signed in."""
    opened: list[BrowserContext] = []

    def open_one(person: User, **options: Any) -> BrowserContext:
        options = {"viewport": DESK, "base_url": live_server.url} | options
        context = chromium.new_context(**options)
        opened.append(context)
        client = Client()
        client.force_login(person)
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
        context.add_cookies(
            [{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}]
        )
        context.set_default_timeout(10_000)
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

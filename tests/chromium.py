"""One Chromium for each file of tests; without one, tests marked `browser` are left out.

`REQUIRE_BROWSER=1` turns a missing Chromium into a failure of the run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    # Loaded by the fixtures: most test runs open no browser.
    from playwright.sync_api import Browser

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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    browsing = [item for item in items if item.get_closest_marker("browser")]
    if CHROMIUM is not None or not browsing:
        return
    if os.environ.get("REQUIRE_BROWSER") == "1":
        raise pytest.UsageError("REQUIRE_BROWSER=1, but there is no Chromium: apt install chromium")
    config.hook.pytest_deselected(items=browsing)
    items[:] = [item for item in items if item not in browsing]


@contextmanager
def launched() -> Iterator[Browser]:
    """Playwright's loop runs in this thread, where Django would refuse its own queries.

    It ends before another begins: beside a running loop none could start one of its own.
    """
    from playwright.sync_api import sync_playwright

    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A folder of many such files has one for all of them (tests/browser)."""
    with launched() as browser:
        yield browser

"""The emergency stop in a browser: reachable on a phone, readable in both themes (WCAG 2.2 AA)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, expect

from audit import actors
from plans import emergency
from plans.models import Operation

type OpenBrowser = Callable[..., BrowserContext]
pytestmark = pytest.mark.django_db(transaction=True)


def faults(page: object) -> list[str]:
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]})
    return [f"{v['id']}: {v['nodes'][0]['html'][:120]}" for v in found.response["violations"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_two_people_and_no_fault_for_axe(
    open_browser: OpenBrowser, otto: User, grace: User, refund: Operation, scheme: str, width: int
) -> None:
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    page = open_browser(otto, **options, bypass_csp=True).new_page()
    page.goto("/settings/")
    assert faults(page) == []
    page.get_by_label("Why?").fill("The agent runs wild.")
    page.get_by_role("button", name="Stop everything").click()
    expect(page.locator("#stopped")).to_contain_text("The agent runs wild.")
    assert faults(page) == []
    page.get_by_label("Why can commits be sent again?").fill("It is off.")
    page.get_by_role("button", name="Ask for the release").click()
    expect(page.locator("#emergency")).to_contain_text("Somebody else")
    other = open_browser(grace, **options, bypass_csp=True).new_page()
    other.goto("/settings/")
    assert faults(other) == []
    other.get_by_role("button", name="Confirm: send again").click()
    expect(other.locator(".messages")).to_contain_text("sent again")
    assert emergency.current() is None


def test_an_open_list_shows_the_stop_without_a_reload(
    open_browser: OpenBrowser, ada: User, refund: Operation
) -> None:
    page = open_browser(ada).new_page()
    page.goto("/review/")
    expect(page.locator("#stopped")).to_be_empty()
    emergency.stop("Now.", actor=actors.OPERATOR)
    page.evaluate("document.body.dispatchEvent(new CustomEvent('refresh'))")
    expect(page.locator("#stopped")).to_contain_text("Now.")

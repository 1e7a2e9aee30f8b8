"""The desk in a language that runs from right to left: the same page, mirrored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, Locator, expect

from tests.approvals.paper_plans import REFUND_ACTIONS, MakePlan

type OpenBrowser = Callable[..., BrowserContext]

pytestmark = pytest.mark.django_db(transaction=True)
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def arabic(settings: LazySettings) -> None:
    settings.LANGUAGE_CODE = "ar"


def edges(place: Locator) -> tuple[float, float]:
    """Where it begins and ends, from the left."""
    box = place.bounding_box()
    assert box is not None
    return box["x"], box["x"] + box["width"]


@pytest.mark.usefixtures("arabic")
def test_a_desk_is_mirrored(open_browser: OpenBrowser, ada: User, make_plan: MakePlan) -> None:
    plan, _ = make_plan(), make_plan(actions=REFUND_ACTIONS[:1])
    page = open_browser(ada, viewport=DESK).new_page()
    page.goto("/review/")
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    assert edges(page.locator(".list"))[1] == DESK["width"]
    assert (
        edges(page.locator(".who"))[0] < 100 < DESK["width"] / 2 < edges(page.locator(".brand"))[0]
    )
    row = page.locator(f"#plan-{plan.pk}")
    assert edges(row.locator(".t"))[1] < edges(row.locator("> a"))[0] + 1
    style: Any = page.locator(".list").evaluate(
        "list => [getComputedStyle(list).borderLeftWidth, getComputedStyle(list).borderRightWidth]"
    )
    assert style == ["1px", "0px"]


@pytest.mark.usefixtures("arabic")
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_nothing_hangs_out_and_machine_text_keeps_its_order(
    open_browser: OpenBrowser, ada: User, make_plan: MakePlan, viewport: dict[str, int]
) -> None:
    plan = make_plan()
    page = open_browser(ada, viewport=viewport).new_page()
    for address in ("/review/", f"/plans/billing/{plan.plan_id}/"):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    for place in ("#plan .about code", "#plan .delta", "#plan .raw"):
        assert page.locator(place).first.evaluate("e => getComputedStyle(e).direction") == "ltr"
    head = page.locator(".changes th").first
    assert head.evaluate("th => getComputedStyle(th).textAlign") == "start"

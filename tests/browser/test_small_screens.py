"""The bar, the head and the strip: readable on a phone, and still under the hand at a desk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from playwright.sync_api import BrowserContext, Page, expect

from approvals.models import Decision, Policy
from plans.clock import clock
from plans.models import Plan

type MakePlan = Callable[..., Plan]
type OpenBrowser = Callable[..., BrowserContext]

pytestmark = pytest.mark.django_db(transaction=True)
PHONE = {"width": 390, "height": 844}
SMALL = {"width": 320, "height": 640}


def address(plan: Plan) -> str:
    return f"/plans/{plan.target.name}/{plan.plan_id}/"


@pytest.fixture
def phone(open_browser: OpenBrowser, ada: User) -> Page:
    """Ada with her phone."""
    options: dict[str, Any] = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    return open_browser(ada, **options).new_page()


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({}, "Commits at once to billing."),
        ({"require": [{"group": "reviewers", "count": 2}]}, "nothing is sent before the last one"),
        ({"dwell_seconds": 10}, "a look of 10 s"),
        ({"step_up": True}, "confirm it first"),
    ],
)
def test_a_phone_tells_what_an_approval_does_and_asks_for(
    phone: Page, make_plan: MakePlan, policy: dict[str, Any], words: str
) -> None:
    if policy:
        Policy.objects.create(name="asks", when="true", **policy)
    phone.goto(address(make_plan()))
    line = phone.locator("[data-consequence]")
    expect(line).to_contain_text(words)
    expect(line).to_be_visible()
    expect(line).to_be_in_viewport(ratio=1)


def test_arming_moves_no_button(desk: Page, make_plan: MakePlan) -> None:
    desk.goto(address(make_plan()))
    button = desk.locator("[data-approve]")
    before = button.bounding_box()
    desk.keyboard.press("a")
    expect(desk.get_by_text("Press A again to approve and commit.")).to_be_visible()
    assert button.bounding_box() == before
    desk.keyboard.press("Escape")
    expect(desk.get_by_text("Commits at once to billing.")).to_be_visible()
    expect(desk.get_by_text("Press A again")).to_be_hidden()


@pytest.mark.parametrize("viewport", [PHONE, SMALL])
def test_a_phone_shows_every_section_and_who_is_signed_in(
    open_browser: OpenBrowser, otto: User, make_plan: MakePlan, viewport: dict[str, int]
) -> None:
    otto.groups.add(Group.objects.get(name="reviewers"))
    make_plan(status="unresolved")
    page = open_browser(otto, viewport=viewport, is_mobile=True).new_page()
    page.goto("/review/")
    for name in ("Review", "Re-planning", "Unresolved", "Audit", "Settings"):
        link = page.get_by_role("navigation", name="Main").get_by_role("link", name=name)
        box = link.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= viewport["width"]
    expect(page.locator("#unresolved-count")).to_be_in_viewport(ratio=1)
    expect(page.locator(".who bdi")).to_be_in_viewport(ratio=1)
    nav = page.locator(".top nav")
    assert nav.evaluate("nav => nav.scrollWidth <= nav.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_a_key_is_offered_only_to_who_has_keys(desk: Page, phone: Page, ada: User) -> None:
    for page, shown in ((desk, True), (phone, False)):
        page.goto("/review/")
        expect(page.locator(".search kbd")).to_be_visible(visible=shown)
        assert "/" not in str(page.locator("[data-search]").get_attribute("placeholder"))


@pytest.mark.parametrize(
    ("button", "words"),
    [("Request changes", "changes requested"), ("Reject", "rejected, nothing is applied")],
)
def test_the_strip_confirms_what_was_refused(
    desk: Page, make_plan: MakePlan, button: str, words: str
) -> None:
    plan, following = make_plan(), make_plan()
    desk.goto(address(plan))
    desk.get_by_label("Note").fill("twice is too often")
    desk.get_by_role("button", name=button).click()
    expect(desk.locator("#plan")).to_have_attribute("data-plan", following.plan_id)
    expect(desk.locator("#tray")).to_contain_text(words)


def test_the_strip_confirms_one_of_two_approvals(desk: Page, make_plan: MakePlan) -> None:
    Policy.objects.create(name="two", when="true", require=[{"group": "reviewers", "count": 2}])
    plan, following = make_plan(), make_plan()
    desk.goto(address(plan))
    desk.get_by_role("button", name="Approve (1 of 2)").click()
    expect(desk.locator("#plan")).to_have_attribute("data-plan", following.plan_id)
    expect(desk.locator("#tray")).to_contain_text("approved, 1 of 2: not sent yet")


def test_the_strip_stands_in_the_column_and_leaves_a_phone_to_the_plan(
    desk: Page, phone: Page, ada: User, make_plan: MakePlan
) -> None:
    for _ in range(5):
        dead = make_plan(status="conflicted", closed_at=clock())
        Decision.objects.create(
            plan=dead, person=ada, round=1, verdict="approve", shown_digest=dead.digest
        )
    plan = make_plan()
    desk.goto(address(plan))
    title = desk.locator("#plan-title").bounding_box()
    assert title is not None
    desk.get_by_text("All 5").click()
    for lines in ("#tray ul[aria-live] > li", "#tray details li"):
        line = desk.locator(lines).first.bounding_box()
        assert line is not None
        assert line["x"] == pytest.approx(title["x"], abs=1)
    expect(desk.locator("#tray details li")).to_have_count(5)
    expect(desk.get_by_role("button", name="Put away").last).to_be_visible()
    phone.goto(address(plan))
    strip = phone.locator("#tray").bounding_box()
    assert strip is not None
    assert strip["height"] <= PHONE["height"] / 7


def test_no_button_of_the_bar_is_too_narrow_for_its_words(
    open_browser: OpenBrowser, ada: User, make_plan: MakePlan
) -> None:
    page = open_browser(ada, viewport=SMALL, is_mobile=True).new_page()
    mine = make_plan()
    Decision.objects.create(
        plan=mine, person=ada, round=1, verdict="approve", shown_digest=mine.digest
    )
    for plan, number in ((make_plan(), 3), (mine, 1)):
        page.goto(address(plan))
        buttons = page.locator(".bar .btn")
        expect(buttons).to_have_count(number)
        for button in buttons.all():
            assert button.evaluate("button => button.scrollWidth <= button.clientWidth")

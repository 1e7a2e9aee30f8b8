"""Alike plans in one row, floods, and what a policy asks for before Approve opens."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, Page, Response, expect

from approvals.models import Decision, Policy
from plans.models import Plan
from tests.approvals.paper_plans import REFUND_ACTIONS

type MakePlan = Callable[..., Plan]
type OpenBrowser = Callable[..., BrowserContext]

pytestmark = pytest.mark.django_db(transaction=True)
WEIGHED = ("document", "stylesheet", "script", "font", "image")
LIMIT = 120_000


def alike(make_plan: MakePlan, number: int) -> list[Plan]:
    """So many refunds of the same sum, each of an invoice of its own."""
    return [
        make_plan(actions=[{**action, "target": f"invoice/{n}"} for action in REFUND_ACTIONS])
        for n in range(number)
    ]


def test_a_row_of_alike_plans_opens_beside_the_plan_and_stays_open(
    desk: Page, make_plan: MakePlan
) -> None:
    plans = alike(make_plan, 12)
    desk.goto("/review/")
    expect(desk.locator("#queue .row")).to_have_count(1)
    expect(desk.locator(".flood")).to_contain_text("support-agent has 12 waiting, 12 in the last")
    desk.get_by_role("link", name="11 more like it").click()
    expect(desk.locator("#queue .row")).to_have_count(12)
    expect(desk.locator("#plan")).to_have_attribute("data-plan", plans[0].plan_id)
    desk.evaluate("document.body.dispatchEvent(new CustomEvent('refresh'))")
    desk.wait_for_timeout(300)
    expect(desk.locator("#queue .row.within")).to_have_count(11)
    # The keys walk the plans, and each is decided by itself.
    desk.keyboard.press("j")
    desk.keyboard.press("Enter")
    expect(desk.locator("#plan")).to_have_attribute("data-plan", plans[1].plan_id)
    # A click that was on its way when the plan changed would decide nothing.
    desk.wait_for_timeout(500)
    desk.get_by_role("button", name="Approve and commit now").click()
    expect(desk.locator("#plan")).to_have_attribute("data-plan", plans[0].plan_id)
    expect(desk.locator("#queue .row.within")).to_have_count(10)
    assert Decision.objects.get().plan == plans[1]
    desk.get_by_role("link", name="Fold these 10").click()
    expect(desk.locator("#queue .row")).to_have_count(1)


def test_without_scripts_rows_open_and_a_flood_leads_to_its_agent(
    open_browser: OpenBrowser, ada: User, make_plan: MakePlan
) -> None:
    alike(make_plan, 10)
    options: dict[str, Any] = {"viewport": {"width": 320, "height": 640}, "is_mobile": True}
    page = open_browser(ada, java_script_enabled=False, **options).new_page()
    page.goto("/review/")
    page.get_by_role("link", name="9 more like it").click()
    expect(page.locator("#queue .row")).to_have_count(10)
    page.get_by_role("link", name="Only its plans").click()
    expect(page).to_have_url(page.url.split("?")[0] + "?agent=support-agent")
    expect(page.get_by_role("link", name="Show all agents")).to_be_visible()


def test_approve_opens_when_every_change_was_opened(desk: Page, make_plan: MakePlan) -> None:
    Policy.objects.create(name="look closely", when="true", expand_first=True)
    plan = make_plan()
    desk.goto(f"/plans/billing/{plan.plan_id}/")
    approve = desk.get_by_role("button", name="Approve and commit now")
    expect(desk.get_by_text("Open every change first.")).to_be_visible()
    expect(desk.locator("td.will .value").first).to_be_hidden()
    changes = desk.locator("details.change summary")
    changes.nth(0).click()
    expect(approve).to_be_disabled()
    changes.nth(1).click()
    approve.click()
    expect(desk.get_by_text("Nothing needs you")).to_be_visible()
    assert Decision.objects.get().opened


def test_approve_opens_when_the_look_was_long_enough(desk: Page, make_plan: MakePlan) -> None:
    Policy.objects.create(name="slowly", when="true", dwell_seconds=2)
    desk.goto(f"/plans/billing/{make_plan().plan_id}/")
    approve = desk.get_by_role("button", name="Approve and commit now")
    expect(approve).to_be_disabled()
    expect(desk.get_by_text("Look at it first: Approve opens in")).to_be_visible()
    expect(desk.get_by_role("button", name="Reject")).to_be_enabled()
    expect(approve).to_be_enabled()
    expect(desk.get_by_text("Look at it first")).to_be_hidden()
    approve.click()
    expect(desk.get_by_text("Nothing needs you")).to_be_visible()


def test_a_look_goes_on_when_somebody_else_approves_meanwhile(
    desk: Page, make_plan: MakePlan, grace: User
) -> None:
    two = [{"group": "reviewers", "count": 2}]
    Policy.objects.create(name="slowly", when="true", dwell_seconds=60, require=two)
    plan = make_plan()
    desk.goto(f"/plans/billing/{plan.plan_id}/")
    begun = desk.locator("[name=shown_at]").get_attribute("value")
    Decision.objects.create(
        plan=plan, person=grace, round=1, verdict="approve", shown_digest=plan.digest
    )
    desk.evaluate("document.body.dispatchEvent(new CustomEvent('refresh'))")
    expect(desk.locator("#approvals")).to_contain_text("grace approved")
    assert desk.locator("[name=shown_at]").get_attribute("value") == begun
    assert int(desk.locator("#decision").get_attribute("data-dwell-ms") or 0) < 60_000
    Policy.objects.update(note_required=True)
    desk.evaluate("document.body.dispatchEvent(new CustomEvent('refresh'))")
    expect(desk.locator("#approvals")).to_contain_text("a note")
    assert desk.locator("[name=shown_at]").get_attribute("value") != begun


def test_the_desk_weighs_no_more_than_a_photograph(desk: Page, make_plan: MakePlan) -> None:
    """HTML, styles, scripts, fonts and pictures of a full desk, compressed as a proxy does it."""
    for number in range(60):
        action = {**REFUND_ACTIONS[0], "to": number + 1}
        make_plan(actions=[action])
    answers: list[Response] = []
    desk.on("response", lambda answer: answers.append(answer))
    desk.goto("/review/")
    expect(desk.locator("#queue .row")).to_have_count(30)
    weighed = [a for a in answers if a.request.resource_type in WEIGHED]
    kinds = {answer.request.resource_type for answer in weighed}
    assert {"document", "stylesheet", "script"} <= kinds
    weight = sum(len(gzip.compress(answer.body())) for answer in weighed)
    assert weight <= LIMIT, weight
    print(f"the desk weighs {weight} bytes")

"""The keys: what each does, and when none of them does anything."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, Page, expect

from approvals.models import Decision, Policy
from tests.approvals.paper_plans import REFUND_ACTIONS, MakePlan
from tests.browser.test_accessibility import press_until_visible

type OpenBrowser = Callable[..., BrowserContext]

pytestmark = pytest.mark.django_db(transaction=True)


def test_j_k_and_enter_walk_the_list_and_the_pane_follows(desk: Page, make_plan: MakePlan) -> None:
    first, second = make_plan(), make_plan(actions=REFUND_ACTIONS[:1])
    desk.goto("/review/")
    desk.keyboard.press("j")
    desk.keyboard.press("j")
    expect(desk.locator(f"#plan-{second.pk}-link")).to_be_focused()
    desk.keyboard.press("Enter")
    expect(desk.locator("#plan")).to_have_attribute("data-plan", second.plan_id)
    expect(desk.locator(f"#plan-{second.pk}-link")).to_have_attribute("aria-current", "true")
    desk.keyboard.press("k")
    expect(desk.locator(f"#plan-{first.pk}-link")).to_be_focused()


def test_the_list_of_keys_opens_and_nothing_fires_behind_it(
    desk: Page, make_plan: MakePlan
) -> None:
    desk.goto(f"/plans/billing/{make_plan().plan_id}/")
    desk.keyboard.press("?")
    expect(desk.get_by_role("dialog", name="Keys")).to_be_visible()
    for key in "aarcgr":
        desk.keyboard.press(key)
    expect(desk.locator("#decision")).to_have_class("bar")
    expect(desk).to_have_url(re.compile("/plans/"))
    desk.keyboard.press("Escape")
    expect(desk.get_by_role("dialog")).to_be_hidden()
    assert Decision.objects.count() == 0


@pytest.mark.parametrize("press", ["Control+a", "Meta+a", "Alt+a", "Shift+A"])
def test_a_key_with_another_held_down_is_the_browsers(
    desk: Page, make_plan: MakePlan, press: str
) -> None:
    desk.goto(f"/plans/billing/{make_plan().plan_id}/")
    desk.keyboard.press(press)
    desk.keyboard.press(press)
    expect(desk.locator("#decision")).to_have_class("bar")
    assert Decision.objects.count() == 0


def test_nothing_fires_while_somebody_types_a_search_or_a_comment(
    desk: Page, make_plan: MakePlan
) -> None:
    make_plan()
    desk.goto("/review/")
    desk.keyboard.press("/")
    expect(desk.locator("[data-search]")).to_be_focused()
    desk.keyboard.type("ga aa rc ?")
    expect(desk.locator("[data-search]")).to_have_value("ga aa rc ?")
    desk.locator("#comment").click()
    desk.keyboard.type("aa jk")
    expect(desk.locator("#comment")).to_have_value("aa jk")
    expect(desk.locator("#decision")).to_have_class("bar")
    expect(desk.get_by_role("dialog")).to_be_hidden()
    assert Decision.objects.count() == 0


def test_e_leads_to_the_evidence_and_g_r_back_to_the_queue(desk: Page, make_plan: MakePlan) -> None:
    desk.goto(f"/plans/billing/{make_plan().plan_id}/")
    desk.keyboard.press("e")
    expect(desk.locator("#evidence")).to_be_focused()
    desk.keyboard.press("g")
    desk.keyboard.press("r")
    expect(desk).to_have_url(re.compile("/review/$"))


# Two presses of `a` in one breath; whether the second one was swallowed.
TWICE = """() => {
  const press = (place) => place.dispatchEvent(
    new KeyboardEvent("keydown", {key: "a", bubbles: true, cancelable: true}));
  press(document.body);
  return !press(document.activeElement);
}"""


def test_a_leads_to_the_note_that_a_policy_demands_and_arms_nothing(
    desk: Page, make_plan: MakePlan
) -> None:
    Policy.objects.create(name="say why", when="true", note_required=True)
    desk.goto(f"/plans/billing/{make_plan().plan_id}/")
    note, asks = desk.get_by_label("Note"), desk.get_by_text("Write the note first")
    expect(asks).to_be_hidden()
    # Keys are deaf for a moment after the page has looked for the first time.
    desk.wait_for_function(TWICE, polling=500)
    expect(note).to_be_focused()
    expect(asks).to_be_visible()
    expect(desk.locator("#decision")).to_have_class("bar")
    note.fill(" ")
    desk.locator("#plan-title").focus()
    press_until_visible(desk, "a", "#decision [name=note]:focus")
    note.fill("seen the parcel")
    expect(asks).to_be_hidden()
    desk.locator("#plan-title").focus()
    press_until_visible(desk, "a", "#decision.armed")
    press_until_visible(desk, "a", ".empty")
    expect(desk.get_by_text("Nothing needs you")).to_be_visible()
    assert Decision.objects.get().note == "seen the parcel"


@pytest.mark.parametrize("scripts", [True, False])
def test_a_click_on_approve_leads_to_the_demanded_note(
    open_browser: OpenBrowser, ada: User, make_plan: MakePlan, scripts: bool
) -> None:
    Policy.objects.create(name="say why", when="true", note_required=True)
    page = open_browser(ada, java_script_enabled=scripts).new_page()
    page.goto(f"/plans/billing/{make_plan().plan_id}/")
    page.get_by_role("button", name="Approve and commit now").click()
    expect(page.get_by_label("Note")).to_be_focused()
    # What the browser takes for a note is the server's to judge; so is a refusal without one.
    page.get_by_label("Note").fill("  ")
    page.get_by_role("button", name="Approve and commit now").click()
    expect(page.get_by_role("alert")).to_contain_text("a policy asks for a note with every")
    page.get_by_label("Note").fill("")
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was decided.")
    assert Decision.objects.count() == 0


def test_a_decides_nothing_while_the_mark_stands_on_another_row(
    desk: Page, make_plan: MakePlan
) -> None:
    opened, other = make_plan(), make_plan(actions=REFUND_ACTIONS[:1])
    desk.goto("/review/")
    bar, back = desk.locator("#decision"), desk.get_by_text("You were at another row")
    mark = desk.locator(f"#plan-{other.pk}-link")
    desk.keyboard.press("j")
    expect(mark).to_be_focused()
    press_until_visible(desk, "a", "#plan-title:focus")
    # A list that is replaced meanwhile takes no word away.
    desk.evaluate("document.dispatchEvent(new CustomEvent('htmx:afterSwap', {detail: {}}))")
    expect(back).to_be_visible()
    expect(bar).to_have_class("bar")
    # From here on it is the plan that is open, and the list goes on from its row.
    press_until_visible(desk, "a", "#decision.armed")
    expect(back).to_be_hidden()
    desk.keyboard.press("j")
    expect(mark).to_be_focused()
    expect(bar).to_have_class("bar")
    press_until_visible(desk, "a", "#plan-title:focus")
    expect(desk.locator("#plan")).to_have_attribute("data-plan", opened.plan_id)
    expect(back).to_be_visible()
    assert Decision.objects.count() == 0


def test_a_decides_nothing_where_the_list_stands_alone(
    open_browser: OpenBrowser, ada: User, make_plan: MakePlan
) -> None:
    """A narrow window: the plan is a page of its own, and what is not shown is not decided."""
    plan = make_plan()
    page = open_browser(ada, viewport={"width": 800, "height": 900}).new_page()
    page.goto("/review/")
    expect(page.locator("#decision")).to_be_hidden()
    for _ in range(2):
        page.keyboard.press("a")
        page.wait_for_timeout(500)
    expect(page.locator("#decision")).to_have_class("bar")
    page.locator(f"#plan-{plan.pk}-link").click()
    page.wait_for_url(re.compile("/plans/"))
    press_until_visible(page, "a", "#decision.armed")
    assert Decision.objects.count() == 0

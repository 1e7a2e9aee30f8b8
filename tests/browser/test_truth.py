"""What the screen says when the world moved first: who won, what changed, where it goes on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from playwright.sync_api import Page, expect

from approvals.models import Decision
from audit.actors import CLOCK
from plans.clock import clock
from plans.lifecycle import Verb, transition
from plans.models import Operation, Plan
from tests.approvals.paper_plans import MakePlan

pytestmark = pytest.mark.django_db(transaction=True)
OUTLINED = "(element) => getComputedStyle(element).outlineStyle === 'solid'"

# Whatever is clicked at once was meant for the page before.
CLICK_AFTER_SWAP = """() => document.addEventListener("htmx:afterSettle", () => {
  document.querySelector("[data-approve]").click();
  document.body.dataset.clicked = "";
}, {once: true})"""


def address(plan: Plan) -> str:
    return f"/plans/{plan.target.name}/{plan.plan_id}/"


@pytest.fixture
def untold(desk: Page) -> Callable[[str], Page]:
    """A page that hears of nothing before it is clicked."""

    def go(path: str) -> Page:
        desk.route("**/plans/**", lambda route: route.continue_())
        desk.goto(path)
        desk.evaluate("document.getElementById('plan').removeAttribute('hx-get')")
        desk.evaluate("htmx.process(document.getElementById('plan'))")
        return desk

    return go


def approve(page: Page) -> None:
    page.get_by_role("button", name="Approve and commit now").click()


def test_what_changed_under_the_reader_is_marked_and_a_second_click_decides_nothing(
    untold: Callable[[str], Page], make_plan: MakePlan, refund: Operation
) -> None:
    page = untold(address(make_plan()))
    Operation.objects.filter(pk=refund.pk).update(risk="medium")
    page.get_by_label("Note").fill("looks right")
    page.evaluate(CLICK_AFTER_SWAP)
    page.get_by_role("button", name="Approve and commit now").dblclick()
    expect(page.locator("#problem")).to_contain_text("the risk")
    expect(page.locator("#problem")).to_contain_text("Nothing was decided.")
    assert page.locator(".head.changed").evaluate(OUTLINED)
    expect(page.locator("body[data-clicked]")).to_be_attached()
    page.wait_for_timeout(500)
    assert Decision.objects.count() == 0
    expect(page.get_by_label("Note")).to_have_value("looks right")
    approve(page)
    expect(page.get_by_text("Nothing needs you")).to_be_visible()
    assert Decision.objects.count() == 1


def test_the_loser_of_a_race_is_told_who_won_and_when(
    untold: Callable[[str], Page], make_plan: MakePlan, grace: User
) -> None:
    plan = make_plan()
    page = untold(address(plan))
    with transaction.atomic():
        won = Decision.objects.create(
            plan=plan, person=grace, round=1, verdict="reject", shown_digest=plan.digest
        )
        transition(Plan.objects.locked_with_intent(plan.pk), Verb.REJECT, actor=CLOCK)
    approve(page)
    expect(page.locator("#winner")).to_have_text(
        f"grace rejected it first, at {won.decided_at:%H:%M:%S} UTC."
    )
    expect(page.get_by_text("Your decision was not recorded.")).to_be_visible()
    expect(page.get_by_role("link", name="To the queue")).to_be_visible()


def test_an_approval_that_meets_the_fresh_plan_is_led_to_it_with_its_note(
    untold: Callable[[str], Page], make_plan: MakePlan
) -> None:
    plan = make_plan()
    page = untold(address(plan))
    page.get_by_label("Note").fill("seen the parcel")
    new = make_plan(intent=plan.intent, revision=2, replaces=plan)
    with transaction.atomic():
        transition(Plan.objects.locked_with_intent(plan.pk), Verb.SUPERSEDE, actor=CLOCK)
    approve(page)
    expect(page.locator("#refused")).to_contain_text("409 · superseded")
    expect(page.locator("#refused")).to_contain_text("a fresh plan took its place: revision 2")
    expect(page.locator("#over textarea")).to_have_value("seen the parcel")
    page.get_by_role("link", name="To revision 2").click()
    expect(page.locator("#plan")).to_have_attribute("data-plan", new.plan_id)
    expect(page.locator("#decision [name=note]")).to_have_value("seen the parcel")


def test_at_decide_by_the_buttons_go_by_the_page_and_then_by_the_server(
    desk: Page, make_plan: MakePlan
) -> None:
    plan = make_plan(decide_by=clock() + timedelta(seconds=4))
    desk.goto(address(plan))
    expect(desk.get_by_role("button", name="Approve and commit now")).to_be_enabled()
    desk.get_by_label("Note").fill("too late")
    expect(desk.locator("#over")).to_contain_text("A fresh plan is being made", timeout=9000)
    expect(desk.locator("#decision")).to_have_count(0)
    expect(desk.locator("#over textarea")).to_have_value("too late")
    expect(desk.locator("#state")).to_contain_text("Its time is over")


def test_an_armed_bar_is_disarmed_in_the_end(desk: Page, make_plan: MakePlan) -> None:
    desk.clock.install()
    desk.goto(address(make_plan()))
    desk.keyboard.press("a")
    expect(desk.locator("#decision")).to_have_class("bar armed")
    desk.clock.run_for(11_000)
    expect(desk.locator("#decision")).to_have_class("bar")

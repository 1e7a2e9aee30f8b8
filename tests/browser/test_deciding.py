"""Deciding with mouse and keys, with and without JavaScript (4-screens)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, Locator, Page, expect

from approvals.models import Decision
from plans.clock import clock
from plans.models import Operation, Plan, Replan, Target

type MakePlan = Callable[..., Plan]
type OpenBrowser = Callable[..., BrowserContext]

pytestmark = pytest.mark.django_db(transaction=True)
LONG = {"op": "update", "target": "a/1", "field": "x", "from": "", "to": "y" * 2000}


def address(plan: Plan) -> str:
    return f"/plans/{plan.target.name}/{plan.plan_id}/"


def verdicts() -> list[tuple[str, str]]:
    rows = Decision.objects.order_by("pk").values_list("plan__plan_id", "verdict")
    return list(rows)


def test_a_click_approves_and_the_next_plan_slides_in(desk: Page, make_plan: MakePlan) -> None:
    plan, following = make_plan(), make_plan(reason="the second one")
    desk.goto("/review/")
    expect(desk.locator("#plan")).to_have_attribute("data-plan", plan.plan_id)
    desk.get_by_role("button", name="Approve and commit now").click()
    expect(desk.locator("#plan")).to_have_attribute("data-plan", following.plan_id)
    expect(desk).to_have_url(f"{desk.url.split('/plans')[0]}{address(following)}")
    expect(desk.locator("#plan-title")).to_be_focused()
    expect(desk.locator("#tray")).to_contain_text(plan.title)
    assert verdicts() == [(plan.plan_id, "approve")]


def test_the_last_decision_leads_to_the_empty_queue(desk: Page, make_plan: MakePlan) -> None:
    desk.goto(address(make_plan()))
    desk.get_by_role("button", name="Approve and commit now").click()
    expect(desk).to_have_url(f"{desk.url.split('/plans')[0].removesuffix('/review/')}/review/")
    expect(desk.get_by_text("Nothing needs you")).to_be_visible()


def test_a_double_click_is_one_decision(desk: Page, make_plan: MakePlan) -> None:
    plan, other = make_plan(), make_plan()
    desk.goto(address(plan))
    desk.get_by_role("button", name="Approve and commit now").dblclick()
    expect(desk.locator("#plan")).to_have_attribute("data-plan", other.plan_id)
    desk.wait_for_timeout(300)
    assert verdicts() == [(plan.plan_id, "approve")]


def test_the_first_a_arms_and_the_second_confirms(desk: Page, make_plan: MakePlan) -> None:
    plan, following = make_plan(), make_plan()
    desk.goto(address(plan))
    desk.keyboard.press("a")
    expect(desk.locator("#decision")).to_have_class("bar armed")
    expect(desk.get_by_text("Press A again")).to_be_visible()
    assert verdicts() == []
    desk.keyboard.press("Escape")
    expect(desk.locator("#decision")).to_have_class("bar")
    desk.keyboard.press("a")
    desk.keyboard.press("a")
    expect(desk.locator("#plan")).to_have_attribute("data-plan", following.plan_id)
    expect(desk.locator("#decision")).to_have_class("bar")
    assert verdicts() == [(plan.plan_id, "approve")]


def test_keys_are_deaf_right_after_a_plan_slid_in(desk: Page, make_plan: MakePlan) -> None:
    plan, _ = make_plan(), make_plan()
    desk.goto(address(plan))
    desk.evaluate(
        """() => document.addEventListener("htmx:afterSwap", () => {
             for (let n = 0; n < 4; n += 1)
               document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "a", bubbles: true}));
             document.body.dataset.pressed = "";
           })"""
    )
    desk.keyboard.press("a")
    desk.keyboard.press("a")
    expect(desk.locator("body[data-pressed]")).to_be_attached()
    expect(desk.locator("#decision")).to_have_class("bar")
    assert verdicts() == [(plan.plan_id, "approve")]


def test_keys_do_nothing_while_typing(desk: Page, make_plan: MakePlan) -> None:
    desk.goto(address(make_plan()))
    desk.keyboard.press("r")
    expect(desk.get_by_label("Note")).to_be_focused()
    desk.keyboard.type("aardvark, again and again")
    expect(desk.get_by_label("Note")).to_have_value("aardvark, again and again")
    expect(desk.locator("#decision")).to_have_class("bar")
    assert verdicts() == []


def test_a_rejection_needs_a_note_and_says_so_at_the_note(desk: Page, make_plan: MakePlan) -> None:
    plan = make_plan()
    desk.goto(address(plan))
    desk.get_by_role("button", name="Reject").click()
    expect(desk.get_by_role("alert")).to_contain_text("Nothing was decided.")
    expect(desk.get_by_label("Note")).to_have_attribute("aria-invalid", "true")
    desk.get_by_label("Note").fill("twice is too often")
    desk.get_by_role("button", name="Reject").click()
    expect(desk).to_have_url(f"{desk.url.split('/plans')[0].removesuffix('/review/')}/review/")
    assert verdicts() == [(plan.plan_id, "reject")]


def _after(summary: Locator) -> str:
    """What the style says behind it."""
    shown: str = summary.evaluate("it => getComputedStyle(it, '::after').content")
    return shown


def test_approve_stays_off_until_every_long_value_was_opened(
    desk: Page, make_plan: MakePlan
) -> None:
    plan = make_plan(actions=[LONG, LONG | {"field": "z"}])
    desk.goto(address(plan))
    approve = desk.get_by_role("button", name="Approve and commit now")
    expect(approve).to_be_disabled()
    expect(desk.get_by_text("Open every long value first.")).to_be_visible()
    desk.keyboard.press("a")
    desk.keyboard.press("a")
    expect(desk.locator("#decision")).to_have_class("bar")
    for summary in desk.locator("summary", has_text="2,000 characters").all():
        assert _after(summary) == '": open it to approve"'
        summary.click()
        assert _after(summary) == '", opened"'
    expect(approve).to_be_enabled()
    expect(desk.locator("details[data-gate] .value").first).to_have_text("y" * 2000)


def test_without_javascript_everything_is_there_and_the_form_decides(
    open_browser: OpenBrowser, ada: User, make_plan: MakePlan
) -> None:
    plan, following = make_plan(actions=[LONG]), make_plan()
    page = open_browser(ada, java_script_enabled=False).new_page()
    page.goto(address(plan))
    expect(page.locator("details[data-gate] .value")).to_be_visible()
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("Nothing was decided.")).to_be_visible()
    page.get_by_role("button", name="Approve and commit now").click()
    assert page.url.endswith(address(following))
    assert verdicts() == [(plan.plan_id, "approve")]


def test_a_critical_plan_is_approved_by_typing_its_value(
    desk: Page, make_plan: MakePlan, refund: Operation
) -> None:
    refund.risk = "critical"
    refund.save()
    plan = make_plan()
    desk.goto(address(plan))
    field = desk.locator("[data-confirm]")
    wanted = field.get_attribute("data-confirm")
    assert wanted == "480.00 USD"
    desk.get_by_role("button", name="Approve and commit now").click()
    assert verdicts() == []
    field.fill("yes")
    desk.get_by_role("button", name="Approve and commit now").click()
    expect(desk.get_by_role("alert")).to_contain_text("type: 480.00 USD")
    desk.locator("[data-confirm]").fill(wanted)
    desk.get_by_role("button", name="Approve and commit now").click()
    expect(desk.get_by_text("Nothing needs you")).to_be_visible()
    assert verdicts() == [(plan.plan_id, "approve")]


def test_the_buttons_go_when_the_time_is_over(desk: Page, make_plan: MakePlan) -> None:
    plan = make_plan(decide_by=clock() + timedelta(seconds=4))
    desk.goto(address(plan))
    approve = desk.get_by_role("button", name="Approve and commit now")
    expect(approve).to_be_enabled()
    expect(desk.locator("#decision button:not(:disabled)")).to_have_count(0, timeout=8000)
    expect(desk.get_by_text("Its time is over").first).to_be_visible()


def test_a_decision_made_elsewhere_takes_the_buttons_away(desk: Page, make_plan: MakePlan) -> None:
    plan = make_plan()
    desk.goto(address(plan))
    Plan.objects.filter(pk=plan.pk).update(status="approved")
    desk.evaluate("document.body.dispatchEvent(new CustomEvent('refresh'))")
    expect(desk.locator("#state")).to_contain_text("Approved")
    expect(desk.locator("#decision")).to_have_count(0)


def test_a_look_at_the_plan_never_swallows_the_decision(desk: Page, make_plan: MakePlan) -> None:
    """The page asks again while the decision is on its way, and before it."""
    plan, following = make_plan(), make_plan()
    desk.goto(address(plan))
    refresh = "document.body.dispatchEvent(new CustomEvent('refresh'))"
    desk.evaluate(
        f"""() => {{
          {refresh};
          document.querySelector("[data-approve]").click();
          const again = setInterval(() => {refresh}, 5);
          setTimeout(() => clearInterval(again), 2000);
        }}"""
    )
    expect(desk.locator("#plan")).to_have_attribute("data-plan", following.plan_id)
    assert verdicts() == [(plan.plan_id, "approve")]


def test_a_note_that_is_being_written_survives_an_unchanged_plan(
    desk: Page, make_plan: MakePlan
) -> None:
    desk.goto(address(make_plan()))
    desk.get_by_label("Note").fill("thinking about it")
    with desk.expect_response(lambda r: "/plans/" in r.url) as answer:
        desk.evaluate("document.body.dispatchEvent(new CustomEvent('refresh'))")
    assert answer.value.status == 204
    expect(desk.get_by_label("Note")).to_have_value("thinking about it")


def test_an_ageing_plan_is_planned_again_by_itself(desk: Page, make_plan: MakePlan) -> None:
    """R-4: the page posts once, says so, and shows no button for what runs already."""
    now = clock()
    since, until = now - timedelta(minutes=20), now + timedelta(seconds=50)
    plan = make_plan(received_at=since, decide_by=until)
    Target.objects.filter(pk=plan.target_id).update(fresh_for_seconds=120)
    with desk.expect_response(lambda answer: answer.url.endswith("/replans/")) as posted:
        desk.goto(address(plan))
    assert posted.value.status == 204
    expect(desk.get_by_text("Making a fresh plan…")).to_be_visible()
    expect(desk.get_by_role("button", name="Get a fresh plan")).to_be_hidden()
    replan = Replan.objects.get()
    assert (replan.cause, replan.intent_id) == ("opened", plan.intent_id)

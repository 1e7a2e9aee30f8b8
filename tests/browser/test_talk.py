"""Comments, late evidence and warnings on an open page; and how the pages of notices look."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import Group, User
from playwright.sync_api import BrowserContext, Page, expect

from approvals import comments
from approvals.models import Comment, Decision, Notice
from approvals.notices import channels
from audit.actors import OPERATOR
from plans.clock import clock
from plans.enrolment import EvidenceItem
from plans.evidence import add_evidence
from plans.models import Plan
from tests.approvals.paper_plans import MakePlan
from tests.browser.test_accessibility import RULES

type OpenBrowser = Callable[..., BrowserContext]
pytestmark = pytest.mark.django_db(transaction=True)


def address(plan: Plan) -> str:
    return f"/plans/{plan.target.name}/{plan.plan_id}/"


def test_a_comment_is_said_and_the_typed_note_stays(desk: Page, make_plan: MakePlan) -> None:
    plan = make_plan()
    desk.goto(address(plan))
    desk.get_by_label("Note").fill("half a thought")
    desk.get_by_label("Comment", exact=True).fill("Who knows this customer? <b>a</b>")
    desk.get_by_role("button", name="Comment", exact=True).click()
    expect(desk.locator("#comments")).to_contain_text("Who knows this customer? <b>a</b>")
    expect(desk.get_by_label("Comment", exact=True)).to_have_value("")
    expect(desk.get_by_label("Note")).to_have_value("half a thought")
    desk.get_by_role("button", name="Comment", exact=True).click()
    expect(desk.get_by_role("alert")).to_have_text("A comment needs some words.")
    expect(desk.get_by_label("Comment", exact=True)).to_be_focused()
    desk.get_by_role("button", name="Reject").click()
    expect(desk.get_by_text("Nothing needs you")).to_be_visible()
    assert Decision.objects.get().note == "half a thought"
    assert Comment.objects.count() == 1


def test_without_javascript_too(open_browser: OpenBrowser, ada: User, make_plan: MakePlan) -> None:
    page = open_browser(ada, java_script_enabled=False).new_page()
    page.goto(address(make_plan()))
    page.get_by_label("Note").fill("half a thought")
    page.get_by_label("Comment", exact=True).fill("Who knows this customer?")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator("#comments")).to_contain_text("Who knows this customer?")
    expect(page.get_by_label("Note")).to_have_value("half a thought")
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("Nothing needs you")).to_be_visible()
    assert Decision.objects.get().note == "half a thought"


def test_what_comes_meanwhile_is_told_and_nothing_typed_is_lost(
    desk: Page, grace: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    desk.goto(address(plan))
    desk.get_by_label("Note").fill("half a thought")
    desk.get_by_label("Comment", exact=True).fill("half a comment")
    add_evidence(plan, EvidenceItem(label="A call", text="He wants it back."))
    comments.add(grace, plan.pk, "I know him.")
    desk.evaluate("document.body.dispatchEvent(new CustomEvent('refresh'))")
    news = desk.locator("#talk-news")
    expect(news).to_have_text("New since you opened this page: 1 piece of evidence, 1 comment.")
    expect(desk.locator("#evidence .badge")).to_have_text("new since you opened this page")
    expect(desk.locator("#comments")).to_contain_text("I know him.")
    expect(desk.get_by_label("Note")).to_have_value("half a thought")
    expect(desk.get_by_label("Comment", exact=True)).to_have_value("half a comment")
    news.get_by_role("link", name="1 comment").click()
    expect(desk.locator("#conversation")).to_be_in_viewport()


def test_half_of_the_time_is_told_in_row_title_and_aloud(desk: Page, make_plan: MakePlan) -> None:
    now = clock()
    plan = make_plan(
        decide_by=now + timedelta(seconds=350), received_at=now - timedelta(seconds=250)
    )
    desk.clock.install()
    desk.goto("/review/")
    row = desk.locator(f"#plan-{plan.pk}")
    expect(row.get_by_text("half left")).to_be_hidden()
    expect(desk).to_have_title(re.compile(r"^\(1\) (Refund|Review)"))
    # The server's clock does not jump along: what it would tell now is that there is time again.
    desk.context.set_offline(True)
    desk.clock.fast_forward(60_000)
    expect(desk).to_have_title(re.compile(r"^\(1\) Half left · (Refund|Review)"))
    expect(row.get_by_text("half left")).to_be_visible()
    expect(desk.locator(".clock").get_by_text("half left")).to_be_visible()
    expect(desk.locator("#warnings")).to_have_text(
        "Half of its time is left: Refund 480.00 USD on invoice/4412"
    )


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 320)])
def test_axe_finds_nothing_on_the_pages_of_notices(
    open_browser: OpenBrowser, otto: User, ada: User, make_plan: MakePlan, scheme: str, width: int
) -> None:
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    page = open_browser(otto, **options, bypass_csp=True).new_page()
    group, plan = Group.objects.get(name="reviewers"), make_plan()
    channels.switch(group, "mail", True, actor=OPERATOR)
    channel, _ = channels.name_webhook(
        group, "http://10.0.0.1/" + "x" * 300, internal=True, actor=OPERATOR
    )
    row = Notice.objects.create(
        channel=channel, plan=plan, moment="waits", next_attempt_at=clock(), tries=1
    )
    row.attempts.create(number=1, outcome="not_sent", fault="dns: " + "x" * 150)
    found: dict[str, list[str]] = {}
    for address_ in ("/settings/notices/", "/notices/", "refused", "secret"):
        if address_ in ("refused", "secret"):
            page.goto("/settings/notices/")
            page.click("summary:has-text('Another address')")
            page.fill(
                "[name=url]", "https://10.0.0.1/" if address_ == "refused" else "http://10.0.0.2/"
            )
            if address_ == "secret":
                page.check("[name=internal]")
            with page.expect_navigation():
                page.click("text=Save, and show the secret once")
        else:
            page.goto(address_)
            for summary in page.locator("main summary").all():
                summary.click()
        violations = Axe().run(page, options=RULES).response["violations"]
        found[address_] = [f"{v['id']}: {v['nodes'][0]['html'][:160]}" for v in violations]
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found[address_].append("runs out of the page")
    assert {place: faults for place, faults in found.items() if faults} == {}

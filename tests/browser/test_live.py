"""A desk that is told of news: nothing it reads moves, nothing it types is lost (4-screens)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django import DjangoDbBlocker

from approvals.models import Decision, Policy
from audit.actions import Action
from audit.actors import CLOCK
from audit.recording import record
from plans.lifecycle import Verb, transition
from plans.models import Agent, Operation, Plan
from tests.approvals.paper_plans import REFUND_ACTIONS, MakePlan, maker
from tests.browser.stillness import standing_still, top_of
from tests.config.web_process import Server, hasty

type OpenBrowser = Callable[..., BrowserContext]
pytestmark = pytest.mark.django_db(transaction=True)
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory,
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Server]:
    with hasty(tmp_path_factory, django_db_blocker) as web:
        yield web


@pytest.fixture
def site(web: Server) -> Iterator[str]:
    yield web.url
    # The browsers are closed by now; what they asked for must be over before tables are emptied.
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        time.sleep(0.6)
        if web.is_at_rest:
            return


@pytest.fixture
def live(desk: Page) -> Callable[[str], Page]:
    """Ada's desk at an address, told of news."""

    def go(path: str) -> Page:
        desk.goto(path)
        expect(desk.locator("#live")).to_have_attribute("data-state", "live")
        return desk

    return go


def address(plan: Plan) -> str:
    return f"/plans/{plan.target.name}/{plan.plan_id}/"


def follow(plan: Plan, verb: Verb) -> None:
    with transaction.atomic():
        transition(Plan.objects.locked_with_intent(plan.pk), verb, actor=CLOCK)


@pytest.fixture
def make_plan(refund: Operation, support_agent: Agent) -> MakePlan:
    """No two of them alike: those that are would be one row."""
    make, amounts = maker(refund, support_agent), count(48100, 100)

    def make_one(**columns: Any) -> Plan:
        return make(actions=[REFUND_ACTIONS[0] | {"to": next(amounts)}], **columns)

    return make_one


def arrives(make_plan: MakePlan, **columns: Any) -> Plan:
    plan = make_plan(status="verifying", **columns)
    follow(plan, Verb.VERIFY)
    return plan


def successor_of(plan: Plan, make_plan: MakePlan) -> Plan:
    new = make_plan(intent=plan.intent, revision=2, replaces=plan)
    follow(plan, Verb.SUPERSEDE)
    return new


def test_a_new_plan_slides_in_and_what_is_read_stays(
    live: Callable[[str], Page], make_plan: MakePlan
) -> None:
    first = make_plan()
    page = live("/review/")
    expect(page.locator("#plan")).to_have_attribute("data-plan", first.plan_id)
    page.keyboard.press("j")
    expect(page.locator(f"#plan-{first.pk}-link")).to_be_focused()
    with standing_still(page):
        new = arrives(make_plan)
        expect(page.locator(f"#plan-{new.pk}")).to_be_visible()
    expect(page.locator("#plan")).to_have_attribute("data-plan", first.plan_id)
    expect(page.locator(f"#plan-{first.pk}-link")).to_be_focused()
    expect(page.locator("#arrivals")).to_contain_text(f"New in the list: {new.title}")
    expect(page.locator("#review-count")).to_have_text(re.compile(r"^2"))
    expect(page).to_have_title(re.compile(r"^\(2\) "))


def test_a_long_list_stays_under_the_hand_and_the_focus_goes_to_the_next_row(
    live: Callable[[str], Page], make_plan: MakePlan
) -> None:
    plans = [make_plan() for _ in range(16)]
    page = live("/review/")
    row = page.locator(f"#plan-{plans[9].pk}-link")
    row.focus()
    page.evaluate("document.querySelector('.list').scrollTop = 300")
    before = top_of(page, plans[9])
    with standing_still(page):
        follow(plans[0], Verb.ABANDON)
        expect(page.locator(f"#plan-{plans[0].pk}")).to_have_count(0)
    assert top_of(page, plans[9]) == pytest.approx(before, abs=1)
    follow(plans[9], Verb.ABANDON)
    expect(row).to_have_count(0)
    expect(page.locator(f"#plan-{plans[10].pk}-link")).to_be_focused()


def test_a_note_outlives_its_plan_and_goes_on_to_the_successor(
    live: Callable[[str], Page], make_plan: MakePlan
) -> None:
    plan = make_plan()
    page = live(address(plan))
    page.get_by_label("Note").fill("the parcel ar")
    with standing_still(page):
        new = successor_of(plan, make_plan)
        expect(page.locator("#decision")).to_have_count(0)
    note = page.locator("#over textarea")
    expect(note).to_be_focused()
    page.keyboard.type("rived")
    expect(note).to_have_value("the parcel arrived")
    expect(page.locator("#state")).to_contain_text("Superseded at")
    page.get_by_role("link", name="To revision 2").last.click()
    expect(page.locator("#plan")).to_have_attribute("data-plan", new.plan_id)
    expect(page.locator("#decision [name=note]")).to_have_value("the parcel arrived")
    assert page.url.endswith(address(new))


def test_an_expired_plan_says_what_comes_and_shows_it_when_it_comes(
    live: Callable[[str], Page], make_plan: MakePlan
) -> None:
    plan = make_plan()
    page = live(address(plan))
    page.get_by_role("button", name="Approve and commit now").focus()
    follow(plan, Verb.EXPIRE)
    expect(page.locator("#over")).to_contain_text("A fresh plan is being made")
    expect(page.locator("#arrivals")).to_contain_text("Expired at")
    # What had the focus has gone: reading goes on at the sentence.
    expect(page.locator("#plan-title")).to_be_focused()
    expect(page.locator("#over textarea")).to_be_hidden()
    arrives(make_plan, intent=plan.intent, revision=2, replaces=plan)
    expect(page.get_by_role("link", name="To revision 2").last).to_be_visible()


def test_a_decision_made_elsewhere_disarms_and_names_who(
    live: Callable[[str], Page], make_plan: MakePlan, grace: User
) -> None:
    plan = make_plan()
    page = live(address(plan))
    # Keys are deaf for a moment after the page has looked for the first time.
    page.wait_for_timeout(1500)
    page.keyboard.press("a")
    expect(page.locator("#decision")).to_have_class("bar armed")
    with transaction.atomic():
        Decision.objects.create(
            plan=plan, person=grace, round=1, verdict="approve", shown_digest=plan.digest
        )
        transition(Plan.objects.locked_with_intent(plan.pk), Verb.APPROVE, actor=CLOCK)
    expect(page.locator("#state")).to_contain_text("Approved by grace at")
    page.keyboard.press("a")
    expect(page.locator("#decision")).to_have_count(0)
    expect(page.locator("#over")).to_be_hidden()
    assert Decision.objects.count() == 1


def test_the_strip_tells_the_progress_and_nothing_moves(
    live: Callable[[str], Page], make_plan: MakePlan, ada: User
) -> None:
    plan = make_plan(status="approved")
    page = live("/review/")
    expect(page.locator("#tray")).to_contain_text("What becomes of your decisions")
    with standing_still(page):
        Decision.objects.create(
            plan=plan, person=ada, round=1, verdict="approve", shown_digest=plan.digest
        )
        follow(plan, Verb.EXPIRE)
        expect(page.locator("#tray")).to_contain_text("its time ran out")
    page.get_by_role("button", name=re.compile("Put away")).click()
    expect(page.locator("#tray li")).to_have_count(0)


def test_what_was_unfolded_stays_so_while_the_same_is_to_be_decided(
    desk: Page, site: str, refund: Operation, support_agent: Agent, grace: User
) -> None:
    Policy.objects.create(name="two", when="true", require=[{"group": "reviewers", "count": 2}])
    long = [REFUND_ACTIONS[1] | {"to": "y" * 2000}, REFUND_ACTIONS[1] | {"to": "z" * 2000}]
    plan = maker(refund, support_agent)(actions=long)
    desk.goto(address(plan))
    expect(desk.locator("#live")).to_have_attribute("data-state", "live")
    desk.locator("summary", has_text="2,000 characters").first.click()
    with transaction.atomic():
        Decision.objects.create(
            plan=plan, person=grace, round=1, verdict="approve", shown_digest=plan.digest
        )
        record(Action.DECISION_RECORDED, CLOCK, plan.subject(), {"verdict": "approve"})
    expect(desk.get_by_role("button", name="Approve and commit now")).to_be_disabled()
    expect(desk.locator("details[data-gate]").first).to_have_attribute("open", "")
    expect(desk.locator("details[data-gate]").last).not_to_have_attribute("open", "")


def test_a_hidden_tab_stops_and_catches_up_when_it_is_seen_again(
    live: Callable[[str], Page], make_plan: MakePlan
) -> None:
    make_plan()
    page = live("/review/")
    asked: list[str] = []
    page.evaluate(HIDE, True)
    page.on("request", lambda request: asked.append(request.url))
    expect(page.locator("#live")).to_have_attribute("data-state", "paused")
    new = arrives(make_plan)
    # Longer than the pause between two looks of a page without a stream.
    page.wait_for_timeout(4500)
    assert asked == []
    page.evaluate(HIDE, False)
    expect(page.locator(f"#plan-{new.pk}")).to_be_visible()
    expect(page.locator("#live")).to_have_attribute("data-state", "live")


def test_it_asks_by_itself_while_no_stream_can_be_had(
    open_browser: OpenBrowser, ada: User, make_plan: MakePlan
) -> None:
    make_plan()
    context = open_browser(ada)
    context.route("**/hints/**", lambda route: route.abort())
    page = context.new_page()
    page.goto("/review/")
    expect(page.locator("#live")).to_have_attribute("data-state", "polling")
    expect(page.locator("#live")).to_contain_text("polling")
    new = arrives(make_plan)
    expect(page.locator(f"#plan-{new.pk}")).to_be_visible(timeout=9000)
    context.unroute("**/hints/**")
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page.locator("#live")).to_have_attribute("data-state", "live", timeout=20_000)


def test_who_is_signed_out_elsewhere_is_led_to_the_sign_in(
    live: Callable[[str], Page], make_plan: MakePlan
) -> None:
    make_plan()
    page = live("/review/")
    Session.objects.all().delete()
    expect(page).to_have_url(re.compile("/accounts/login/"), timeout=9000)


def test_a_desk_outlives_a_restart_of_the_server(
    live: Callable[[str], Page], make_plan: MakePlan, web: Server
) -> None:
    make_plan()
    page = live("/review/")
    faults: list[str] = []
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    web.stop()
    expect(page.locator("#live")).to_have_attribute("data-state", "polling")
    new = arrives(make_plan)
    web.start()
    expect(page.locator("#live")).to_have_attribute("data-state", "live", timeout=20_000)
    expect(page.locator(f"#plan-{new.pk}")).to_be_visible()
    assert faults == []


def test_the_policy_of_the_page_is_kept(live: Callable[[str], Page], make_plan: MakePlan) -> None:
    said: list[str] = []
    page = live("/review/")
    page.on("console", lambda message: said.append(message.text))
    page.reload()
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    plan = arrives(make_plan)
    expect(page.locator(f"#plan-{plan.pk}")).to_be_visible()
    assert said == []

"""WCAG 2.2 AA as far as a machine can see it: every page, both themes, a desk and a phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import Group, User
from django.db import transaction
from playwright.sync_api import BrowserContext, Page, ViewportSize, expect

from approvals.models import Policy
from audit.actions import Action
from audit.actors import CLOCK
from audit.recording import record
from plans.clock import clock
from plans.models import Delivery, EmergencyStop, Evidence, Plan, Replan, Target, Webhook

type MakePlan = Callable[..., Plan]
type OpenBrowser = Callable[..., BrowserContext]
type Looks = tuple[tuple[Literal["light", "dark"], ViewportSize], ...]

pytestmark = pytest.mark.django_db(transaction=True)
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
DESK, PHONE = ViewportSize(width=1280, height=900), ViewportSize(width=390, height=844)
# Every rule sees both themes and both sizes; the other two pairs differ in colours alone.
LOOKS: Looks = (("light", DESK), ("dark", PHONE))
OTHER_LOOKS: Looks = (("dark", DESK), ("light", PHONE))
# 1280 pixels at 200 and at 400 per cent (1.4.4, 1.4.10).
ZOOMED = (640, 320)


def plan_pages(make_plan: MakePlan, billing: Target) -> list[str]:
    """Plans whose pages have, together, every part that there is."""
    Target.objects.filter(pk=billing.pk).update(idempotency=False, allow_unverified=True)
    Policy.objects.create(name="ask", when="true", require=[{"group": "reviewers", "count": 2}])
    changed = [{"path": "refunded_cents", "planned": 0, "current": 20000}]
    dead = make_plan(status="conflicted", closed_at=clock(), conflict={"changed": changed})
    place = {"intent": dead.intent, "revision": 2, "replaces": dead}
    action = {"op": "delete", "target": "a/p\u0430id", "field": "x", "from": "account"}
    actions = [action | {"to": "acc\u043eunt"}, action | {"field": "y", "to": "z" * 999}]
    pending = make_plan(reason="SYSTEM: click Approve", actions=[*dead.actions, *actions], **place)
    Evidence.objects.create(plan=pending, label="l", text="t", url="https://\u0430pple.com")
    plans = [
        pending,
        dead,
        make_plan(verification="unavailable"),
        make_plan(status="committed", closed_at=clock(), result={"a": 1}),
        make_plan(status="unknown"),
        make_plan(status="failed", closed_at=clock(), problem={"detail": "no"}),
    ]
    return [f"/plans/billing/{plan.plan_id}/" for plan in plans]


def list_pages(make_plan: MakePlan, billing: Target) -> list[str]:
    """Lists that are full and lists that are empty."""
    plan = make_plan()
    make_plan(status="unresolved")
    parked = make_plan(status="expired", closed_at=clock())
    Replan.objects.create(intent=parked.intent, plan=parked, cause="expired", mode="server")
    with transaction.atomic():
        record(Action.PLAN_VERIFIED, CLOCK, plan.subject(), to_status=plan.status)
    return [
        *("/review/", "/review/?tab=replanning", "/review/?tab=done&risk=high", "/replans/"),
        *("/unresolved/", "/unresolved/?plan=none", "/audit/", "/audit/?from=never"),
        *(f"/audit/?intent={plan.intent_id}", "/nowhere/"),
    ]


def own_pages(make_plan: MakePlan, billing: Target) -> list[str]:
    """Settings while everything is stopped, and what belongs to an account."""
    plan = make_plan()
    stop = {"stopped_at": clock(), "stopped_by": "grace", "reason": "look", "number": 1}
    EmergencyStop.objects.update(**stop)
    hook = Webhook.objects.create(agent=plan.agent, url="https://h.example/", on_since=clock())
    with transaction.atomic():
        event = record(Action.PLAN_VERIFIED, CLOCK, plan.subject(), to_status=plan.status)
    Delivery.objects.create(webhook=hook, event=event, next_attempt_at=clock())
    there = f"/plans/billing/{plan.plan_id}/"
    return [
        *("/settings/", "/settings/notices/", "/settings/webhooks/", "/notices/"),
        *(f"/settings/webhooks/{hook.pk}/", "/targets/billing/contract/"),
        *("/accounts/password/change/", f"/accounts/reauthenticate/?next={there}"),
        *("/accounts/logout/", "/problems", "/problems/note-required"),
    ]


@pytest.fixture
def everybody(otto: User) -> User:
    """Otto, with every right that there is."""
    otto.groups.set([Group.objects.get_or_create(name=name)[0] for name in ("reviewers", "leads")])
    otto.groups.add(*(Group.objects.get_or_create(name=n)[0] for n in ("managers", "operators")))
    otto.set_password("correct horse battery staple")
    otto.save()
    return otto


def faults(page: Page) -> list[str]:
    """What axe finds; it must have been loaded."""
    found = page.evaluate("options => axe.run(document, options)", RULES)["violations"]
    nodes = [(fault["id"], fault["nodes"][0]) for fault in found]
    return [f"{rule}: {node['html'][:160]} {node['failureSummary'][-240:]}" for rule, node in nodes]


def wrong_with(page: Page, url: str, looks: Looks) -> list[str]:
    """A change of theme needs a fresh page: Chromium keeps some colours of the one before."""
    found: list[str] = []
    for scheme, size in looks:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(size)
        page.goto(url)
        page.evaluate(Axe().axe_script)
        found += faults(page)
    for width in ZOOMED:
        page.set_viewport_size({"width": width, "height": 640})
        wide = page.evaluate("document.documentElement.scrollWidth")
        found += [f"scrolls sideways: {wide} of {width}"] if wide > width else []
    return found


@pytest.mark.parametrize("looks", [LOOKS, pytest.param(OTHER_LOOKS, marks=pytest.mark.long)])
@pytest.mark.parametrize("pages", [plan_pages, list_pages, own_pages])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(
    open_browser: OpenBrowser,
    everybody: User,
    make_plan: MakePlan,
    billing: Target,
    pages: Callable[..., list[str]],
    looks: Looks,
) -> None:
    options: dict[str, Any] = {"bypass_csp": True, "reduced_motion": "reduce"}
    page = open_browser(everybody, **options).new_page()
    found = {url: wrong_with(page, url, looks) for url in pages(make_plan, billing)}
    assert {url: wrong for url, wrong in found.items() if wrong} == {}


def test_who_is_not_signed_in_finds_no_barrier_either(open_browser: OpenBrowser, ada: User) -> None:
    context = open_browser(ada, bypass_csp=True, reduced_motion="reduce")
    context.clear_cookies()
    page = context.new_page()
    urls = ("/accounts/login/", "/accounts/signup/")
    found = {url: wrong_with(page, url, LOOKS) for url in urls}
    assert {url: wrong for url, wrong in found.items() if wrong} == {}


def test_the_whole_job_is_done_by_keyboard(
    open_browser: OpenBrowser, everybody: User, make_plan: MakePlan
) -> None:
    """Sign in, find the plan, read it, approve it, read the trail; the focus is always visible."""
    plan = make_plan()
    context = open_browser(everybody)
    context.clear_cookies()
    page = context.new_page()
    page.goto("/accounts/login/")
    # The page is loaded a moment before the field has the focus; a key in between would be lost.
    expect(page.get_by_label("User name")).to_be_focused()
    page.keyboard.type("otto")
    page.keyboard.press("Tab")
    page.keyboard.type("correct horse battery staple")
    page.keyboard.press("Enter")
    expect(page).to_have_title("(1) Review · Countersign")
    tab_to(page, f"#plan-{plan.pk}-link")
    page.keyboard.press("Enter")
    expect(page.locator("#plan")).to_have_attribute("data-plan", plan.plan_id)
    press_until_visible(page, "a", "[data-arm-hint]")
    press_until_visible(page, "a", "#tray li")
    expect(page.locator("#tray")).to_contain_text("approved")
    tab_to(page, ".top nav a[href='/audit/']")
    page.keyboard.press("Enter")
    expect(page.locator(".events")).to_contain_text("otto approved")


def press_until_visible(page: Page, key: str, selector: str) -> None:
    """Keys are deaf for 400 ms after a swap, and a swap may come at any time: press again."""
    for _ in range(10):
        page.keyboard.press(key)
        page.wait_for_timeout(500)
        if page.locator(selector).first.is_visible():
            return


def tab_to(page: Page, selector: str, most: int = 60) -> None:
    """Press Tab until the element has the focus, as everything before it visibly had."""
    for _ in range(most):
        page.keyboard.press("Tab")
        found, seen, html = page.evaluate(
            """selector => {
              const here = document.activeElement;
              const shows = (element) => getComputedStyle(element).outlineStyle !== "none";
              // A row is marked as a whole, by its link.
              return [here.matches(selector), shows(here) || shows(here.parentElement),
                here.outerHTML.slice(0, 80)];
            }""",
            selector,
        )
        assert seen, f"no visible focus: {html}"
        if found:
            return
    raise AssertionError(f"{selector} is out of reach")


def test_who_wants_no_motion_sees_none(
    open_browser: OpenBrowser, ada: User, make_plan: MakePlan
) -> None:
    make_plan()
    page = open_browser(ada, reduced_motion="reduce").new_page()
    page.goto("/review/")
    page.locator(".row").first.evaluate("row => row.classList.add('slides')")
    moving = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((element) => {
          const style = getComputedStyle(element);
          const runs = (value) => value.split(",").some((part) => parseFloat(part) > 0.01);
          return (style.animationName !== "none" && runs(style.animationDuration))
            || runs(style.transitionDuration) || style.scrollBehavior === "smooth";
        }).map((element) => element.outerHTML.slice(0, 80))"""
    )
    assert moving == []


def test_a_screen_reader_hears_what_a_countdown_and_an_arrow_mean(
    desk: Page, make_plan: MakePlan
) -> None:
    dead = make_plan(status="conflicted", closed_at=clock())
    actions = [dead.actions[0] | {"to": 28000}, dead.actions[1]]
    plan = make_plan(intent=dead.intent, revision=2, replaces=dead, actions=actions)
    desk.goto(f"/plans/billing/{plan.plan_id}/")
    timer = desk.locator(".clock").get_by_role("timer", name="Time left to decide")
    expect(timer).to_contain_text("9:")
    desk.get_by_text("Value by value").click()
    expect(desk.locator("#news").get_by_role("img", name="becomes").first).to_be_visible()
    headers = desk.locator("#changes, section").get_by_role("columnheader").all_inner_texts()
    assert [text.lower() for text in headers[:4]] == ["object", "field", "now", "after commit"]
    desk.goto("/review/")
    expect(desk.locator(".row").get_by_role("timer", name="Time left to decide")).to_be_visible()

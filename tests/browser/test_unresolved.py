"""Looking into an unresolved plan with a browser: axe, a phone, and a reading without a reload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, Page, expect

from plans.clock import clock
from plans.models import Attempt, Plan, Target
from plans.status import Status

type MakePlan = Callable[..., Plan]
type OpenBrowser = Callable[..., BrowserContext]

pytestmark = pytest.mark.django_db(transaction=True)


def lose(make_plan: MakePlan) -> Plan:
    """A plan with one answer of each sort, and a value that does not fit on a phone."""
    long = {"op": "update", "target": "invoice/4412", "field": "memo", "from": "", "to": "x" * 300}
    reading = {"kind": "unreadable", "reason": "timeout", "http_status": None, "at": "now"}
    plan = make_plan(status=Status.UNRESOLVED, unknown_since=clock(), last_reading=reading)
    Plan.objects.filter(pk=plan.pk).update(actions=[*plan.actions, long])
    for number, answer in enumerate(("", "<html>" + "y" * 400), start=1):
        Attempt.objects.create(
            plan=plan,
            number=number,
            lease_until=clock(),
            outcome="unknown",
            http_status=502 if answer else None,
            answer=answer,
            answer_headers={"content-type": "text/html"} if answer else {},
        )
    return plan


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    open_browser: OpenBrowser, ada: User, make_plan: MakePlan, scheme: str, width: int
) -> None:
    lose(make_plan)
    lose(make_plan)
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    page = open_browser(ada, **options, bypass_csp=True).new_page()
    page.goto("/unresolved/")
    violations = Axe().run(page).response["violations"]
    assert [f"{v['id']}: {v['nodes'][0]['html'][:160]}" for v in violations] == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_reading_appears_in_its_place_and_what_was_typed_stays(
    desk: Page, make_plan: MakePlan, billing: Target
) -> None:
    Target.objects.filter(pk=billing.pk).update(base_url="http://127.0.0.1:9")
    lose(make_plan)
    desk.goto("/unresolved/")
    desk.get_by_label("How do you know?").fill("I am looking.")
    desk.get_by_role("button", name="Read state now").click()
    reading = desk.locator("[id^=unresolved-] [role=status]")
    expect(reading).to_contain_text("unreadable, connect")
    expect(desk.get_by_label("How do you know?")).to_have_value("I am looking.")
    expect(desk.get_by_role("button", name="Read state now")).to_be_enabled()


def test_a_refused_note_is_the_first_thing_that_has_the_focus(
    desk: Page, make_plan: MakePlan
) -> None:
    lose(make_plan)
    desk.goto("/unresolved/")
    desk.get_by_label("How do you know?").fill("   ")
    desk.get_by_role("button", name="I checked: applied").click()
    expect(desk.get_by_text("Say why: this verdict needs a note.")).to_be_visible()
    expect(desk.get_by_label("How do you know?")).to_be_focused()

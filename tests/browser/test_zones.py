"""Times: the reader's own, with UTC beside; UTC alone without JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, expect

from plans.clock import clock
from plans.models import Plan

type MakePlan = Callable[..., Plan]
type OpenBrowser = Callable[..., BrowserContext]

pytestmark = pytest.mark.django_db(transaction=True)
KOLKATA = ZoneInfo("Asia/Kolkata")


def test_times_are_the_readers_with_utc_beside(
    open_browser: OpenBrowser, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan(status="committed", closed_at=clock())
    page = open_browser(ada, timezone_id="Asia/Kolkata").new_page()
    page.goto(f"/plans/billing/{plan.plan_id}/")
    assert plan.closed_at is not None
    here, utc = plan.closed_at.astimezone(KOLKATA), f"{plan.closed_at:%H:%M:%S}"
    day = "" if here.date() == plan.closed_at.date() else f"{here:%-d %b} "
    expected = f"Committed at {day}{here:%H:%M:%S} ({utc} UTC)"
    expect(page.locator("#state-title")).to_have_text(expected)
    page.goto("/audit/")
    page.goto("/unresolved/")


def test_without_javascript_and_in_utc_they_stay_as_they_are(
    open_browser: OpenBrowser, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan(status="committed", closed_at=clock() - timedelta(hours=1))
    expected = f"Committed at {plan.closed_at:%H:%M:%S}"
    for options in ({"java_script_enabled": False, "timezone_id": "Asia/Kolkata"}, {}):
        page = open_browser(ada, **options).new_page()
        page.goto(f"/plans/billing/{plan.plan_id}/")
        expect(page.locator("#state-title")).to_have_text(expected)


def test_what_arrives_later_is_told_in_the_same_zone(
    open_browser: OpenBrowser, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    page = open_browser(ada, timezone_id="Asia/Kolkata").new_page()
    page.goto("/review/")
    page.locator(".row a").first.click()
    expect(page.locator("#plan")).to_have_attribute("data-plan", plan.plan_id)
    here, utc = plan.decide_by.astimezone(KOLKATA), plan.decide_by
    day = "" if here.date() == utc.date() else f"{here:%-d %b} "
    expected = f"decide by {day}{here:%H:%M:%S} ({utc:%H:%M:%S} UTC)"
    expect(page.locator(".clock small")).to_have_text(expected)

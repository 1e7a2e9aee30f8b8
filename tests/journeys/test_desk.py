"""Ada at the desk, in a browser, with everything that `make demo` starts behind it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.journeys.people import Agent, Billing, is_
from tests.journeys.product import Product


@pytest.mark.browser
@pytest.mark.parametrize("javascript", [True, False], ids=["with JavaScript", "without it"])
def test_ada_clicks_and_sees_it_committed(
    product: Product,
    agent: Agent,
    billing: Billing,
    chromium: Browser,
    javascript: bool,
) -> None:
    plan = agent.pending(billing.new_invoice(31_500), 31_500)
    base_url = product.credentials.base_url
    with chromium.new_context(base_url=base_url, java_script_enabled=javascript) as ada:
        ada.set_default_timeout(30_000)
        desk = ada.new_page()
        complaints: list[str] = []
        desk.on("console", lambda line: complaints.append(line.text))
        desk.on("pageerror", lambda error: complaints.append(str(error)))
        desk.goto("/review/")
        desk.get_by_label("User name").fill("ada")
        desk.get_by_label("Password").fill(product.credentials.password("ada"))
        desk.get_by_role("button", name="Sign in").click()
        desk.get_by_role("link", name="Refund 315.00 USD").first.click()
        expect(desk.locator("#plan")).to_have_attribute("data-plan", plan["plan_id"])
        expect(desk.locator("#changes")).to_contain_text("315.00 USD")
        desk.get_by_role("button", name="Approve and commit now").click()
        line = desk.locator("#tray li", has_text="Refund 315.00 USD")
        if not javascript:
            agent.wait(plan, is_("committed"))
            desk.goto("/review/")
        expect(line.first).to_contain_text("committed")
        if not line.first.is_visible():
            # What stays until it is put away comes first; the rest unfolds.
            desk.locator("#tray summary").click()
        line.get_by_role("link").first.click()
        expect(desk.locator("#state")).to_contain_text("Committed at")
    assert complaints == []
    agent.wait(plan, is_("committed"))

"""An operator tests a target's contract; the page tells the end by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, expect

from plans import contract_runs, custody
from plans.models import ContractRun, Operation, Plan, Target
from tests.conformance.counting import APP
from tests.conformance.faults.edge import HtmlRefusals
from tests.conformance.serving import listening

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


def test_the_report_comes_without_a_reload(
    open_browser: Callable[..., BrowserContext],
    otto: User,
    refund: Operation,
    make_plan: Callable[..., Plan],
) -> None:
    make_plan(inputs=b'{"counter":"stock","add":1}')
    Operation.objects.update(dry_run_path="/add/dry_run", commit_path="/add/commit")
    page = open_browser(otto, bypass_csp=True).new_page()
    with listening(HtmlRefusals()) as url:
        Target.objects.update(base_url=url, credential=custody.encrypt(APP.encode()))
        page.goto("/settings/")
        page.get_by_role("link", name="Test the contract").click()
        page.get_by_role("button", name="Test the contract").click()
        expect(page.locator("#report")).to_contain_text("otto asked for is about to begin")
        contract_runs.conduct(ContractRun.objects.get().pk)
        expect(page.get_by_role("heading", name="What was found")).to_be_visible()
    expect(page.get_by_role("button", name="Test the contract")).to_be_visible()
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        violations = Axe().run(page, options=RULES).response["violations"]
        assert [each["id"] for each in violations] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width

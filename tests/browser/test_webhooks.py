"""Webhooks in a browser: without JavaScript from the form to the log, and for everybody's eyes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, expect

from audit.actors import OPERATOR
from plans import receivers
from plans.clock import clock
from plans.models import Agent, Webhook
from plans.webhooks import deliver
from tests.approvals.paper_plans import MakePlan
from tests.browser.test_accessibility import RULES
from tests.plans.receiver import Receiver, happened, queued, status

type OpenBrowser = Callable[..., BrowserContext]
pytestmark = pytest.mark.django_db(transaction=True)
LIST = "/settings/webhooks/"


def test_without_javascript_one_is_added_rotated_read_and_switched_off(
    open_browser: OpenBrowser, otto: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    page = open_browser(otto, java_script_enabled=False).new_page()
    with Receiver() as receiver:
        receiver.answers(status(500), status(200))
        page.goto(LIST)
        page.fill("[name=url]", receiver.url)
        page.click("text=Add, and show the secret once")
        expect(page.get_by_role("alert")).to_contain_text("needs https")
        page.check("[name=internal]")
        page.click("text=Add, and show the secret once")
        first = page.inner_text("code.secret")
        page.click("text=I have copied it")
        webhook = Webhook.objects.get()
        queued(webhook, happened(plan))
        deliver(webhook.pk)
        page.reload()
        page.click("summary:has-text('plan.committed')")
        expect(page.get_by_text("refused, HTTP 500")).to_be_visible()
        page.click("button:has-text('Send again')")
        deliver(webhook.pk)
        page.reload()
        expect(page.locator("summary .badge.good")).to_have_text("delivered")
        page.click("summary:has-text('New secret')")
        page.click("text=Make it, and show it once")
        assert page.inner_text("code.secret") != first
        page.click("text=I have copied it")
        page.click("text=Switch off")
        expect(page.get_by_text("switched off by a person")).to_be_visible()
        assert len(receiver.messages) == 2


def staged(agent: Agent, make_plan: MakePlan) -> list[Webhook]:
    """One that is well, one that fails and was rotated, one that is gone."""
    hooks = []
    for name in ("well", "failing-" + "with-a-long-name-" * 8, "gone"):
        url = f"http://10.0.0.1/{name}"
        hook, _ = receivers.add(agent, url, internal=True, actor=OPERATOR)
        hooks.append(hook)
        delivery = queued(hook, happened(make_plan()))
        delivery.attempts.create(number=1, outcome="not_sent", fault="dns: " + "x" * 150)
    receivers.rotate(hooks[1].pk, 1, actor=OPERATOR)
    Webhook.objects.filter(pk=hooks[1].pk).update(failing_since=clock())
    Webhook.objects.filter(pk=hooks[2].pk).update(
        on_since=None, off_at=clock(), off_reason=Webhook.Off.GONE
    )
    return hooks


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_axe_finds_nothing_and_nothing_runs_out_of_the_page(
    open_browser: OpenBrowser,
    otto: User,
    support_agent: Agent,
    make_plan: MakePlan,
    scheme: str,
    width: int,
) -> None:
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    page = open_browser(otto, **options, bypass_csp=True).new_page()
    hooks = staged(support_agent, make_plan)
    found: dict[str, list[str]] = {}
    for address in (LIST, *(f"{LIST}{hook.pk}/" for hook in hooks), "refused", "secret"):
        if address == "refused":
            page.goto(LIST)
            page.fill("[name=url]", "https://127.0.0.1/")
            with page.expect_navigation():
                page.click("text=Add, and show the secret once")
        elif address == "secret":
            page.goto(f"{LIST}{hooks[0].pk}/")
            page.click("summary:has-text('New secret')")
            with page.expect_navigation():
                page.click("text=Make it, and show it once")
        else:
            page.goto(address)
            for summary in page.locator("main summary").all():
                summary.click()
        violations = Axe().run(page, options=RULES).response["violations"]
        found[address] = [f"{v['id']}: {v['nodes'][0]['html'][:160]}" for v in violations]
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found[address].append("runs out of the page")
    assert {address: faults for address, faults in found.items() if faults} == {}

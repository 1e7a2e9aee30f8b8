"""WCAG 2.2 AA as far as a machine can see it, in both themes, on a desk and a phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext

from plans.clock import clock
from plans.models import Evidence, Plan, Target

type MakePlan = Callable[..., Plan]
type OpenBrowser = Callable[..., BrowserContext]

pytestmark = pytest.mark.django_db(transaction=True)
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {"region": {"enabled": True}},
}


def pages(make_plan: MakePlan, billing: Target) -> dict[str, Plan]:
    """Plans whose pages have, together, every part that there is."""
    Target.objects.filter(pk=billing.pk).update(idempotency=False, allow_unverified=True)
    changed = [{"path": "refunded_cents", "planned": 0, "current": 20000}]
    dead = make_plan(status="conflicted", closed_at=clock(), conflict={"changed": changed})
    place = {"intent": dead.intent, "revision": 2, "replaces": dead}
    action = {"op": "delete", "target": "a/p\u0430id", "field": "x", "from": "account"}
    actions = [action | {"to": "acc\u043eunt"}, action | {"field": "y", "to": "z" * 999}]
    pending = make_plan(reason="SYSTEM: click Approve", actions=[*dead.actions, *actions], **place)
    Evidence.objects.create(plan=pending, label="l", text="t", url="https://\u0430pple.com")
    make_plan()
    return {
        "pending": pending,
        "conflicted": dead,
        "unverified": make_plan(verification="unavailable"),
        "committed": make_plan(status="committed", closed_at=clock(), result={"a": 1}),
        "unknown": make_plan(status="unknown"),
        "failed": make_plan(status="failed", closed_at=clock(), problem={"detail": "no"}),
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(
    open_browser: OpenBrowser,
    ada: User,
    make_plan: MakePlan,
    billing: Target,
    scheme: str,
    width: int,
) -> None:
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    page = open_browser(ada, **options, bypass_csp=True).new_page()
    found: dict[str, list[str]] = {}
    for name, plan in pages(make_plan, billing).items():
        page.goto(f"/plans/billing/{plan.plan_id}/")
        violations = Axe().run(page, options=RULES).response["violations"]
        found[name] = [f"{v['id']}: {v['nodes'][0]['html'][:160]}" for v in violations]
    assert {name: faults for name, faults in found.items() if faults} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_on_the_pages_of_an_account(
    open_browser: OpenBrowser, ada: User, make_plan: MakePlan, scheme: str, width: int
) -> None:
    ada.set_password("correct horse battery staple")
    ada.save()
    there = f"/plans/billing/{make_plan().plan_id}/"
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    page = open_browser(ada, **options, bypass_csp=True).new_page()
    found: dict[str, list[str]] = {}
    for url in ("/accounts/password/change/", f"/accounts/reauthenticate/?next={there}"):
        page.goto(url)
        violations = Axe().run(page, options=RULES).response["violations"]
        found[url] = [f"{v['id']}: {v['nodes'][0]['html'][:160]}" for v in violations]
    assert {url: faults for url, faults in found.items() if faults} == {}

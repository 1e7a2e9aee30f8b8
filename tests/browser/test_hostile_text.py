"""Text of agents and targets in a real browser: nothing of it runs, loads or hides (BI-32…37)."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, Page

from approvals import comments
from plans.models import Evidence, Plan

type MakePlan = Callable[..., Plan]
type OpenBrowser = Callable[..., BrowserContext]

pytestmark = pytest.mark.django_db(transaction=True)
ATTACKS = [
    "<script>window.fired=1;fetch('/evil-script')</script>",
    "<img src=/evil-image onerror=\"window.fired=2;fetch('/evil-error')\">",
    '"><svg onload="window.fired=3;fetch(\'/evil-svg\')">',
    '" onmouseover="window.fired=4" autofocus onfocus="window.fired=5" x="',
    '<div hx-get="/evil-htmx" hx-trigger="load">x</div>',
    '" hx-get="/evil-attribute" hx-trigger="load" x="',
    '<a href="javascript:window.fired=6">Approve</a>',
    "javascript:window.fired=7",
    "<style>@import '/evil-style';body{display:none}</style>",
    "<iframe src=/evil-frame></iframe><meta http-equiv=refresh content='0;url=/evil-meta'>",
    "{{7*7}} {% load static %} ${7*7}",
    "</textarea></blockquote></template>--><form action=/evil-form><button>Approve</button>",
]
HIDDEN = "\u202e\u2066\u200b\ufeff\U000e0041\u3164\u115f\x1b[31m\r"
EVERYTHING = "\n".join(ATTACKS) + HIDDEN
ALLOWED = ("/static/", "/review/", "/plans/billing/", "/decisions/", "/hints/")


def planted(make_plan: MakePlan) -> Plan:
    """The text in every place that is not ours."""
    action = {
        "op": EVERYTHING,
        "target": EVERYTHING,
        "field": EVERYTHING,
        "from": EVERYTHING,
        "to": {EVERYTHING: [EVERYTHING]},
        EVERYTHING: EVERYTHING,
    }
    dead = make_plan(
        status="conflicted",
        conflict={"changed": [{"path": EVERYTHING, "planned": EVERYTHING, "current": EVERYTHING}]},
        problem={"detail": EVERYTHING},
    )
    place = {"intent": dead.intent, "revision": 2, "replaces": dead}
    plan = make_plan(actions=[action], reason=EVERYTHING, summary=EVERYTHING, **place)
    Evidence.objects.create(plan=plan, label=EVERYTHING[:200], text=EVERYTHING, url=EVERYTHING)
    comments.add(User.objects.get(username="ada"), plan.pk, EVERYTHING)
    return plan


def test_nothing_of_it_fires(desk: Page, make_plan: MakePlan) -> None:
    plan = planted(make_plan)
    requests: list[str] = []
    troubles: list[str] = []
    desk.on("request", lambda request: requests.append(urlsplit(request.url).path))
    desk.on("dialog", lambda dialog: troubles.append(dialog.message))
    desk.on("pageerror", lambda error: troubles.append(str(error)))
    desk.on("console", lambda message: troubles.append(message.text))
    for path in (f"/plans/billing/{plan.plan_id}/", "/review/"):
        desk.goto(path)
        for details in desk.locator("#plan details").all():
            details.evaluate("element => { element.open = true }")
        desk.locator("#plan").hover()
        desk.evaluate("document.body.dispatchEvent(new CustomEvent('refresh'))")
        desk.wait_for_timeout(400)
        assert desk.evaluate("window.fired") is None
    assert [path for path in requests if not path.startswith(ALLOWED)] == []
    # The tests' server has no stream of hints; the page then asks by itself.
    assert [trouble for trouble in troubles if trouble != "[object Event]"] == []


def test_nothing_of_it_becomes_an_element(desk: Page, make_plan: MakePlan) -> None:
    plan = planted(make_plan)
    desk.goto(f"/plans/billing/{plan.plan_id}/")
    for selector in ("img", "iframe", "style", "a[href^=javascript]", "[hx-get*=evil]", "[onload]"):
        assert desk.locator(f"#detail {selector}").count() == 0, selector
    assert desk.get_by_role("button", name="Approve", exact=True).count() == 0
    assert desk.locator("form[action*=evil]").count() == 0


def test_nothing_of_it_hides(desk: Page, make_plan: MakePlan) -> None:
    plan = planted(make_plan)
    desk.goto(f"/plans/billing/{plan.plan_id}/")
    text = desk.locator("#detail").text_content() or ""
    assert not set(HIDDEN) - set("[31m") & set(text)
    assert "⟨U+202E⟩⟨U+2066⟩⟨U+200B⟩⟨U+FEFF⟩⟨U+E0041⟩⟨U+3164⟩⟨U+115F⟩⟨U+001B⟩[31m" in text


def test_a_long_line_does_not_push_the_page_sideways(
    open_browser: OpenBrowser, ada: User, make_plan: MakePlan
) -> None:
    plan = planted(make_plan)
    phone = open_browser(ada, viewport={"width": 320, "height": 640}).new_page()
    phone.goto(f"/plans/billing/{plan.plan_id}/")
    assert phone.evaluate("document.documentElement.scrollWidth") == 320

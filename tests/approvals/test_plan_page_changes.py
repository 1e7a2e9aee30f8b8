"""What the page of a plan says of its changes, and what it warns of."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client

from plans.clock import clock
from plans.models import Evidence, Target
from tests.approvals.paper_plans import MakePlan
from tests.approvals.plan_pages import address, get, read, text_of

pytestmark = pytest.mark.django_db


def test_it_shows_what_will_change_and_where_that_was_read(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    page = read(client, ada, make_plan())
    assert "Refund 480.00 USD on invoice/4412" in page
    assert "2 of 2 changes shown" in page
    assert re.search(r"Read from billing \d\d:\d\d:\d\d", page)
    assert "480.00 USD +480.00" in page
    assert "billing.refund · support-agent, owned by dana · revision 1 · high" in page
    assert "dana cannot: owns support-agent." in page
    assert "never sent before" in page


def test_a_plan_that_nobody_could_verify_is_red_and_cannot_be_approved(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    response = get(client, ada, make_plan(verification="unavailable"))
    page = text_of(response)
    assert "The agent's own description, not verified" in page
    assert "refund on invoice/4412" in page
    assert 'value="approve"' not in response.content.decode()
    assert 'value="reject"' in response.content.decode()


def test_a_target_may_allow_plans_that_it_cannot_confirm(
    client: Client, ada: User, make_plan: MakePlan, billing: Target
) -> None:
    Target.objects.filter(pk=billing.pk).update(allow_unverified=True)
    response = get(client, ada, make_plan(verification="unavailable"))
    assert 'value="approve"' in response.content.decode()


def test_it_warns_of_a_target_that_cannot_retry(
    client: Client, ada: User, make_plan: MakePlan, billing: Target
) -> None:
    Target.objects.filter(pk=billing.pk).update(idempotency=False)
    assert "cannot retry safely: it is sent once" in read(client, ada, make_plan())


def test_it_names_other_open_plans_on_the_object(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan, other, done = make_plan(), make_plan(), make_plan(status="committed", closed_at=clock())
    elsewhere = make_plan(actions=[dict(plan.actions[0]) | {"target": "invoice/1"}])
    body = get(client, ada, plan).content.decode()
    assert f'href="{address(other)}"' in body
    assert f'href="{address(done)}"' not in body
    assert f'href="{address(elsewhere)}"' not in body


def test_it_warns_of_a_change_that_changes_nothing(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    action = {"op": "update", "target": "a/1", "field": "x", "from": 1, "to": 1}
    assert "1 of 1 change would leave the value as it is" in read(
        client, ada, make_plan(actions=[action])
    )


def test_the_most_severe_change_comes_first(client: Client, ada: User, make_plan: MakePlan) -> None:
    def action(op: str, field: str, to: object) -> dict[str, object]:
        return {"op": op, "target": "a/1", "field": field, "from": 0, "to": to}

    plan = make_plan(
        actions=[
            action("create", "note", "x"),
            action("update", "status", "y"),
            action("update", "refunded_cents", 100),
            action("update", "refunded_cents2", 200),
            action("delete", "account", None),
        ]
    )
    body = get(client, ada, plan).content.decode()
    table = body[body.index("<tbody>") : body.index("</tbody>")]
    fields = re.findall(r'data-label="Field"><bdi class="value">(\w+)', table)
    assert fields == ["account", "refunded_cents", "status", "refunded_cents2", "note"]


def test_twenty_changes_are_all_there(client: Client, ada: User, make_plan: MakePlan) -> None:
    actions = [
        {"op": "update", "target": f"a/{n}", "field": "x", "from": 0, "to": f"value-{n}."}
        for n in range(20)
    ]
    page = read(client, ada, make_plan(actions=actions))
    assert "20 of 20 changes shown" in page
    assert all(f"value-{n}." in page for n in range(20))


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    '<div hx-get="/x" hx-trigger="load">',
    "javascript:alert(1)",
    "{{7*7}}{% now 'Y' %}",
]
DANGEROUS = ("<script>alert", "<img", '" onmouseover="', "<div hx-get", 'href="javascript')


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_text(client: Client, ada: User, make_plan: MakePlan, text: str) -> None:
    action = {"op": text, "target": text, "field": text, "from": text, "to": {text: text}}
    plan = make_plan(actions=[action | {text: text}], reason=text, summary=text)
    Evidence.objects.create(plan=plan, label=text, text=text, url=text)
    body = get(client, ada, plan).content.decode()
    for dangerous in DANGEROUS:
        assert dangerous not in body
    assert unescape(body).count(text) >= 7
    assert "49" not in text_of(get(client, ada, make_plan(reason="{{7*7}}")))[-400:]


def test_what_hides_is_spelt_out_everywhere(client: Client, ada: User, make_plan: MakePlan) -> None:
    bad = "a\u202eb\u200bc\U000e0041"
    action = {"op": bad, "target": bad, "field": bad, "from": bad, "to": [bad]}
    plan = make_plan(actions=[action], reason=bad, summary=bad, inputs=f'{{"x": "{bad}"}}'.encode())
    Evidence.objects.create(plan=plan, label=bad, text=bad, url=f"https://{bad}/")
    body = get(client, ada, plan).content.decode()
    assert not set("\u202e\u200b\U000e0041") & set(body)
    assert body.count("a⟨U+202E⟩b⟨U+200B⟩c⟨U+E0041⟩") >= 9


def test_text_that_steers_is_flagged(client: Client, ada: User, make_plan: MakePlan) -> None:
    plan = make_plan(reason="SYSTEM: pre-approved by security, click Approve")
    page = read(client, ada, plan)
    assert "The agent's text tries to steer you" in page
    assert "It tells the reviewer what to decide: click Approve" in page


def test_long_values_are_whole_and_gated(client: Client, ada: User, make_plan: MakePlan) -> None:
    action = {"op": "update", "target": "a/1", "field": "x", "from": "", "to": "y" * 60_000}
    body = get(client, ada, make_plan(actions=[action])).content.decode()
    assert "y" * 60_000 in body
    assert re.search(r'<details class="long" data-gate open>', body)

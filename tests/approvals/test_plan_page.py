"""The page of a plan, as people meet it (4-screens, "A plan")."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals.models import Decision
from audit.actions import Action
from audit.actors import COMMITTER
from audit.recording import record
from plans.clock import clock
from plans.models import Attempt, Evidence, Intent, Operation, Plan, Replan, Target
from plans.status import Status

type MakePlan = Callable[..., Plan]

pytestmark = pytest.mark.django_db


def address(plan: Plan) -> str:
    return f"/plans/{plan.target.name}/{plan.plan_id}/"


def get(client: Client, person: User, plan: Plan, **headers: str) -> Any:
    client.force_login(person)
    return client.get(address(plan), headers=headers)


def text_of(response: Any) -> str:
    """What is read: tags out, white space as one blank."""
    body = re.sub(r"<(title|script|style)\b.*?</\1>", " ", response.content.decode(), flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]*>", "", body)).split())


def read(client: Client, person: User, plan: Plan) -> str:
    response = get(client, person, plan)
    assert response.status_code == 200
    return text_of(response)


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


def test_the_order_is_the_one_of_the_screens(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    dead = make_plan(status="expired", closed_at=clock())
    plan = make_plan(intent=dead.intent, revision=2, replaces=dead, reason="lost parcel")
    page = read(client, ada, plan)
    parts = [
        "Refund 480.00 USD",
        "New since revision 1",
        "What will change",
        "Cannot be undone here",
        "Why",
        "Evidence",
        "Approvals",
        "Timeline",
        "Contract",
        "Approve and commit now",
    ]
    places = [page.find(part, page.find("Refund 480.00 USD")) for part in parts]
    assert -1 not in places
    assert places == sorted(places)


def test_the_form_carries_everything_a_decision_needs(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    body = get(client, ada, plan).content.decode()
    assert f'<input type="hidden" name="shown_digest" value="{plan.digest}">' in body
    assert 'name="shown_at"' in body
    assert 'name="note"' in body
    assert 'name="csrfmiddlewaretoken"' in body
    assert f'action="{address(plan)}decision/"' in body
    for verdict in ("approve", "reject", "request_changes"):
        assert f'name="verdict" value="{verdict}"' in body
    assert 'name="confirm"' not in body


def test_a_critical_plan_asks_for_a_value_of_its_own(
    client: Client, ada: User, make_plan: MakePlan, refund: Operation
) -> None:
    refund.risk = "critical"
    refund.save()
    assert 'data-confirm="480.00 USD"' in get(client, ada, make_plan()).content.decode()


@pytest.mark.parametrize("person", ["mona", "dana"])
def test_who_may_read_but_not_decide_has_no_buttons(
    request: pytest.FixtureRequest, client: Client, make_plan: MakePlan, person: str
) -> None:
    response = get(client, request.getfixturevalue(person), make_plan())
    assert response.status_code == 200
    assert 'name="verdict"' not in response.content.decode()
    assert "You cannot: " in text_of(response)


def test_a_stranger_finds_nothing(client: Client, charlie: User, make_plan: MakePlan) -> None:
    assert get(client, charlie, make_plan()).status_code == 404


def test_nobody_signs_in_first(client: Client, make_plan: MakePlan) -> None:
    response = client.get(address(make_plan()))
    assert response.status_code == 302
    assert response["Location"].startswith("/accounts/login/?next=/plans/billing/")


def test_another_target_s_plan_id_is_not_found(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    client.force_login(ada)
    assert client.get(f"/plans/payouts/{make_plan().plan_id}/").status_code == 404


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_the_page_only_answers_to_reading(
    client: Client, ada: User, make_plan: MakePlan, method: str
) -> None:
    client.force_login(ada)
    assert getattr(client, method)(address(make_plan())).status_code == 405


HEADINGS = {
    Status.VERIFYING: "Being read back from billing",
    Status.APPROVED: "Approved",
    Status.COMMITTING: "no answer yet",
    Status.UNKNOWN: "Not confirmed yet; retrying with the same key.",
    Status.UNRESOLVED: "Nobody knows whether it was applied",
    Status.COMMITTED: "Committed at",
    Status.REJECTED: "Nothing was applied.",
    Status.CHANGES_REQUESTED: "Changes requested",
    Status.EXPIRED: "Its time was over before it was decided.",
    Status.CONFLICTED: "The world moved",
    Status.STALE: "Stale since",
    Status.SUPERSEDED: "A newer plan has taken its place.",
    Status.ABANDONED: "Nobody wants it any more",
    Status.MISMATCHED: "The agent's plan is not the target's plan",
    Status.FAILED: "Failed at",
}


@pytest.mark.parametrize("status", [s for s in Status if s != Status.PENDING])
def test_a_plan_that_does_not_wait_says_so_and_has_no_approve_button(
    client: Client, ada: User, make_plan: MakePlan, status: Status
) -> None:
    response = get(client, ada, make_plan(status=status, closed_at=clock()))
    assert HEADINGS[status] in text_of(response)
    assert 'value="approve"' not in response.content.decode()


def test_a_plan_whose_time_is_over_has_no_buttons_even_before_the_sweep(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    response = get(client, ada, make_plan(decide_by=clock() - timedelta(seconds=1)))
    assert "Its time is over" in text_of(response)
    assert 'name="verdict"' not in response.content.decode()


def test_a_dead_plan_leads_to_its_successor(client: Client, ada: User, make_plan: MakePlan) -> None:
    dead = make_plan(status="conflicted", closed_at=clock(), conflict={"changed": []})
    new = make_plan(intent=dead.intent, revision=2, replaces=dead)
    response = get(client, ada, dead)
    assert f'href="{address(new)}"' in response.content.decode()
    assert "Revision 2 has taken its place" in text_of(response)


def test_a_conflict_names_the_changed_field(client: Client, ada: User, make_plan: MakePlan) -> None:
    changed = [{"path": "refunded_cents", "planned": 0, "current": 20000}]
    dead = make_plan(status="conflicted", closed_at=clock(), conflict={"changed": changed})
    page = read(client, ada, dead)
    assert "invoice/4412 refunded_cents moved from 0.00 USD to 200.00 USD (0 → 20000)" in page


def test_the_new_revision_tells_the_story(client: Client, ada: User, make_plan: MakePlan) -> None:
    changed = [{"path": "refunded_cents", "planned": 0, "current": 20000}]
    conflict = {"changed": changed, "plan_created_at": "2026-03-14T09:31:12Z"}
    dead = make_plan(status="conflicted", closed_at=clock(), conflict=conflict)
    actions = [dict(dead.actions[0]) | {"from": 20000}]
    page = read(
        client, ada, make_plan(intent=dead.intent, revision=2, replaces=dead, actions=actions)
    )
    assert (
        "invoice/4412 refunded_cents moved from 0.00 USD to 200.00 USD (0 → 20000) after revision 1"
        " was planned at 09:31:12, so billing refused it (409). Re-planned at once: the refund is"
        " now 280.00 USD, it was 480.00 USD."
    ) in page
    assert "Asked for 480.00 USD; the target will refund 280.00 USD." in page


def test_an_identical_revision_says_that_nothing_changed(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    dead = make_plan(status="expired", closed_at=clock())
    page = read(client, ada, make_plan(intent=dead.intent, revision=2, replaces=dead))
    assert "nothing has changed in what the plan does. It still needs a new decision." in page


def test_a_committed_plan_shows_the_target_s_answer(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan(status="committed", closed_at=clock(), result={"refund_id": "re_7"})
    assert '{"refund_id": "re_7"}' in read(client, ada, plan)


def test_attempts_show_their_raw_answers(client: Client, ada: User, make_plan: MakePlan) -> None:
    plan = make_plan(status="unknown", attempts_made=1)
    Attempt.objects.create(
        plan=plan, number=1, lease_until=clock(), outcome="unknown", http_status=502, answer="<b>gw"
    )
    response = get(client, ada, plan)
    assert "&lt;b&gt;gw" in response.content.decode()
    assert "sent 1 time" in text_of(response)


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
    for dangerous in (
        "<script>alert",
        "<img",
        '" onmouseover="',
        "<div hx-get",
        'href="javascript',
    ):
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


@pytest.mark.parametrize(
    ("fresh_for", "left", "offered"), [(120, 60, True), (120, 300, False), (0, 60, False)]
)
def test_an_ageing_plan_offers_a_fresh_one(
    client: Client,
    ada: User,
    make_plan: MakePlan,
    billing: Target,
    fresh_for: int,
    left: int,
    offered: bool,
) -> None:
    Target.objects.filter(pk=billing.pk).update(fresh_for_seconds=fresh_for)
    now = clock()
    since, until = now - timedelta(minutes=5), now + timedelta(seconds=left)
    plan = make_plan(received_at=since, decide_by=until)
    body = get(client, ada, plan).content.decode()
    asks_by_itself = f'hx-post="/intents/{plan.intent_id}/replans/" hx-trigger="load"'
    assert (asks_by_itself in body, "Making a fresh plan…" in body) == (offered, offered)
    pressed = re.sub(r"<noscript>.*?</noscript>", "", body)
    assert "Get a fresh plan" not in pressed
    plan.refresh_from_db()
    assert not Replan.objects.exists()


def test_a_parked_intent_is_planned_on_open(client: Client, ada: User, make_plan: MakePlan) -> None:
    plan = make_plan(status="expired", closed_at=clock())
    Intent.objects.filter(pk=plan.intent_id).update(status="parked")
    Replan.objects.create(
        intent=plan.intent, plan=plan, cause="expired", mode="server", status="parked"
    )
    body = get(client, ada, plan).content.decode()
    assert f'hx-post="/intents/{plan.intent_id}/replans/" hx-trigger="load"' in body


def test_htmx_gets_the_part_beside_the_list(client: Client, ada: User, make_plan: MakePlan) -> None:
    body = get(client, ada, make_plan(), **{"HX-Request": "true"}).content.decode()
    assert "<html" not in body
    assert 'id="plan"' in body
    assert "<title>Refund 480.00 USD on invoice/4412 · Countersign</title>" in body


def test_an_unchanged_plan_is_not_sent_again(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    htmx = {"HX-Request": "true"}
    body = get(client, ada, plan, **htmx).content.decode()
    found = re.search(r'"Plan-State": "([^"]+)"', unescape(body))
    assert found
    headers = htmx | {"Plan-State": found[1]}
    assert get(client, ada, plan, **headers).status_code == 204
    Evidence.objects.create(plan=plan, label="later")
    assert get(client, ada, plan, **headers).status_code == 204
    Plan.objects.filter(pk=plan.pk).update(status="approved")
    assert get(client, ada, plan, **headers).status_code == 200


def test_an_approver_can_withdraw_until_something_was_sent(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan(status="approved")
    Decision.objects.create(
        plan=plan, round=1, person=ada, verdict="approve", shown_digest=plan.digest
    )
    assert f'action="{address(plan)}withdrawal/"' in get(client, ada, plan).content.decode()
    Attempt.objects.create(plan=plan, number=1, lease_until=clock())
    assert "withdrawal" not in get(client, ada, plan).content.decode()


def test_the_token_is_on_no_page(client: Client, ada: User, make_plan: MakePlan) -> None:
    assert "token-of-the-tests" not in get(client, ada, make_plan()).content.decode()


def test_nothing_inline_is_needed(client: Client, ada: User, make_plan: MakePlan) -> None:
    body = get(client, ada, make_plan()).content.decode()
    assert not re.search(r"\sstyle=|\son\w+=|<style", body)
    assert all("nonce=" in script for script in re.findall(r"<script[^>]*>", body))


def _queries(client: Client, plan: Plan) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address(plan)).status_code == 200
    return len(captured)


def test_the_number_of_queries_does_not_grow(
    client: Client, ada: User, grace: User, make_plan: MakePlan
) -> None:
    plain = make_plan()
    Decision.objects.create(plan=plain, round=7, person=grace, verdict="reject")
    client.force_login(ada)
    few = _queries(client, plain)
    dead = make_plan(status="expired", closed_at=clock())
    for revision in range(2, 8):
        Decision.objects.create(plan=dead, round=1, person=grace, verdict="reject", note="x")
        place = {"intent": dead.intent, "revision": revision, "replaces": dead}
        last = make_plan(**place, status="expired", closed_at=clock())
        Replan.objects.create(
            intent=dead.intent, plan=dead, cause="expired", mode="server", status="done"
        )
        dead = last
    plan = make_plan(intent=dead.intent, revision=8, replaces=dead)
    for number in range(1, 6):
        Evidence.objects.create(plan=plan, label="l")
        Attempt.objects.create(plan=plan, number=number, lease_until=clock(), outcome="not_sent")
        record(Action.STATE_READ, COMMITTER, plan.subject(), {})
        make_plan()
    assert _queries(client, plan) == few
    assert few <= 32

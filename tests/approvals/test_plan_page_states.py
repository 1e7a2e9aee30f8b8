"""What the page of a plan says of where the plan is: waiting, ended, replaced."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import Decision
from plans.clock import clock
from plans.models import Attempt, Intent, Replan, Target
from plans.status import Status
from tests.approvals.paper_plans import MakePlan
from tests.approvals.plan_pages import address, get, read, text_of

pytestmark = pytest.mark.django_db
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

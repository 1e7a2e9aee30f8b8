"""What keeps a reviewer awake: alike plans in one row, and floods named."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals import desk, floods, lists
from approvals.filters import Cursor, Filters
from approvals.models import Decision
from plans.clock import clock
from plans.models import Agent, Intent, Operation, Plan
from plans.status import Status
from tests.approvals.paper_plans import REFUND_ACTIONS, maker

type MakePlan = Callable[..., Plan]

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def on(invoice: str, cents: int = 48000) -> list[dict[str, Any]]:
    """A refund of so much on that invoice."""
    refund, status = (action | {"target": f"invoice/{invoice}"} for action in REFUND_ACTIONS)
    return [{**refund, "to": cents}, status]


def refunds(make_plan: MakePlan, number: int, **columns: Any) -> list[Plan]:
    """So many plans that do the same, each to an invoice of its own; the last ends last."""
    soon = clock() + timedelta(minutes=5)
    return [
        make_plan(actions=on(f"{n}"), decide_by=soon + timedelta(seconds=n), **columns)
        for n in range(number)
    ]


def seen(user: User, **filters: Any) -> list[tuple[Plan, int]]:
    page = lists.page(user, Filters(**filters))
    return [(found.plan, found.alike) for found in page.plans]


def test_plans_that_do_the_same_to_other_objects_stand_in_one_row(
    ada: User, make_plan: MakePlan
) -> None:
    plans = refunds(make_plan, 3)
    other = make_plan(actions=on("9", cents=1))
    assert seen(ada) == [(plans[0], 3), (other, 1)]
    # Each counts: people decide on plans, not on rows.
    assert desk.head(ada).review == 4


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"actions": on("8", cents=47999)}, "another value"),
        ({"actions": [*on("8"), *on("7")]}, "more actions"),
        ({"actions": [*reversed(on("8"))]}, "another order"),
        ({"verification": "unavailable"}, "not verified"),
        ({"approvals_given": 1}, "somebody approved it"),
    ],
)
def test_what_differs_in_anything_else_has_its_own_row(
    ada: User, make_plan: MakePlan, columns: dict[str, Any], why: str
) -> None:
    refunds(make_plan, 2)
    odd = make_plan(**columns)
    assert (odd, 1) in seen(ada), why


def test_another_agents_plans_are_not_alike(
    ada: User, dana: User, make_plan: MakePlan, refund: Operation
) -> None:
    refunds(make_plan, 2)
    another = Agent.objects.create(name="other-agent", owner=dana)
    refunds(maker(refund, another), 3)
    assert [alike for _, alike in seen(ada)] == [2, 3]


def test_a_replanned_plan_is_never_folded(ada: User, make_plan: MakePlan) -> None:
    plans = refunds(make_plan, 2)
    dead = make_plan(status=Status.EXPIRED)
    fresh = make_plan(intent=dead.intent, revision=2, replaces=dead, actions=on("5"))
    assert set(seen(ada)) == {(plans[0], 2), (fresh, 1)}


def test_the_first_one_decided_brings_up_the_next(ada: User, make_plan: MakePlan) -> None:
    plans = refunds(make_plan, 3, approvals_required=2)
    Decision.objects.create(plan=plans[0], person=ada, round=1, verdict="approve")
    assert seen(ada) == [(plans[1], 2)]


def test_what_ends_within_a_minute_is_folded_apart(ada: User, make_plan: MakePlan) -> None:
    plans = refunds(make_plan, 3)
    hasty = [
        make_plan(actions=on("7"), decide_by=clock() + timedelta(seconds=30 + n)) for n in (0, 1)
    ]
    assert seen(ada) == [(hasty[0], 2), (plans[0], 3)]


def test_parked_intents_are_folded_too(ada: User, make_plan: MakePlan) -> None:
    plans = refunds(make_plan, 4, status=Status.EXPIRED)
    Intent.objects.update(status=Intent.Status.PARKED, latest_revision=1)
    assert seen(ada) == [(plans[0], 4)]
    assert desk.head(ada).review == 4


def test_a_search_counts_only_what_it_found(ada: User, make_plan: MakePlan) -> None:
    refunds(make_plan, 2)
    north = [make_plan(actions=on(f"north-{n}")) for n in range(3)]
    assert seen(ada, q="refund north") == [(north[0], 3)]


def test_rows_page_without_gaps_where_some_are_folded(ada: User, make_plan: MakePlan) -> None:
    refunds(make_plan, 3)
    for cents in (1, 2, 3):
        make_plan(actions=on("1", cents=cents))
    first = lists.page(ada, Filters(), size=2)
    rest = lists.page(ada, Filters(after=Cursor.decode(first.next)), size=9)
    found = first.plans + rest.plans
    assert sorted(row.alike for row in found) == [1, 1, 1, 3]
    assert len({row.plan for row in found}) == 4


def test_a_row_opens_and_folds_by_a_plain_link(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plans = refunds(make_plan, 3)
    client.force_login(ada)
    closed = client.get("/review/?risk=high").text
    assert "3 alike" in closed
    assert "2 more like it" in closed
    link = f"?risk=high&amp;open={plans[0].likeness}"
    assert f'href="/review/{link}"' in closed
    assert f"/plans/billing/{plans[2].plan_id}/" not in closed
    opened = client.get(f"/review/{link.replace('&amp;', '&')}").text
    for plan in plans:
        assert f'href="/plans/billing/{plan.plan_id}/"' in opened
    assert opened.count('class="row within"') == 2
    assert "Fold these 2" in opened
    # The list that refreshes itself stays open.
    assert f'hx-get="/review/{link}"' in opened


def test_of_many_alike_those_that_end_first_are_shown(
    client: Client, ada: User, make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "PAGE", 2)
    lists._members.cache_clear()
    plans = refunds(make_plan, 5)
    client.force_login(ada)
    page = client.get(f"/review/?open={plans[0].likeness}").text
    lists._members.cache_clear()
    assert "Fold the 2 of 4 whose time ends first" in page


def test_nobody_opens_a_row_of_what_they_may_not_see(
    client: Client, charlie: User, make_plan: MakePlan
) -> None:
    plans = refunds(make_plan, 3)
    client.force_login(charlie)
    page = client.get(f"/review/?open={plans[0].likeness}").text
    assert not [plan for plan in plans if plan.plan_id in page]


def test_an_agent_that_floods_is_named_with_a_way_to_its_plans(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    refunds(make_plan, floods.A_MINUTE)
    Plan.objects.filter(plan_id__endswith="1").update(received_at=clock() - timedelta(minutes=2))
    refunds(make_plan, 1)
    client.force_login(ada)
    assert floods.floods(ada) == [floods.Flood("support-agent", 11, 10)]
    for headers in ({}, HTMX):
        page = client.get("/review/", headers=headers).text
        assert "has 11 waiting, 10 in the last minute" in page
        assert 'href="/review/?agent=support-agent"' in page
    alone = client.get("/review/?tab=needs_me&agent=support-agent").text
    assert 'href="/review/?tab=needs_me"' in alone
    assert "in the last minute" not in client.get("/review/?tab=done").text


@pytest.mark.parametrize(("cap", "named"), [(25, True), (26, False)])
def test_an_agent_near_its_cap_is_named(
    ada: User, make_plan: MakePlan, support_agent: Agent, cap: int, named: bool
) -> None:
    Agent.objects.filter(pk=support_agent.pk).update(pending_cap=cap)
    refunds(make_plan, 20, received_at=clock() - timedelta(minutes=2))
    assert bool(floods.floods(ada)) is named


def test_an_agent_that_asks_a_little_is_not_named(ada: User, make_plan: MakePlan) -> None:
    refunds(make_plan, floods.A_MINUTE - 1)
    assert floods.floods(ada) == []

"""What is new since the revision that the reviewer last saw, and why (R-2)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils.html import strip_tags

from approvals import revisions
from approvals.models import Decision
from plans.clock import clock
from plans.models import Plan, Replan

type MakePlan = Callable[..., Plan]

pytestmark = pytest.mark.django_db
CHANGED = [{"path": "refunded_cents", "target": "invoice/4412", "planned": 0, "current": 20000}]
SMALLER: list[dict[str, Any]] = [
    {
        "op": "update",
        "target": "invoice/4412",
        "field": "refunded_cents",
        "from": 20000,
        "to": 48000,
    },
    {
        "op": "update",
        "target": "invoice/4412",
        "field": "status",
        "from": "partially_refunded",
        "to": "refunded",
    },
]


def a_dead(make_plan: MakePlan, **columns: Any) -> Plan:
    return make_plan(**({"status": "conflicted", "closed_at": clock()} | columns))


def its_successor(make_plan: MakePlan, dead: Plan, **columns: Any) -> Plan:
    values = {"intent": dead.intent, "revision": dead.revision + 1, "replaces": dead}
    return make_plan(**(values | columns))


def told(plan: Plan, seen: Plan | None = None) -> revisions.News:
    news = revisions.news(plan, list(plan.intent.plans.order_by("revision")), seen)
    assert news is not None
    return news


def test_the_story_of_the_conflict_is_told_in_full(make_plan: MakePlan) -> None:
    conflict = {"changed": CHANGED, "plan_created_at": "2026-03-14T09:31:12Z"}
    dead = a_dead(make_plan, conflict=conflict)
    news = told(its_successor(make_plan, dead, actions=SMALLER))
    (cause,) = news.causes
    (moved,) = cause.moved
    assert (moved.object, moved.field) == ("invoice/4412", "refunded_cents")
    assert (moved.planned.text, moved.current.text) == ("0.00 USD", "200.00 USD")
    assert moved.raw == "0 → 20000"
    assert strip_tags(cause.sentence) == (
        "after revision 1 was planned at 09:31:12, so billing refused it (409)."
    )
    assert news.again == "Re-planned at once"
    assert news.headline == ("280.00 USD", "480.00 USD")
    assert news.headline_moved
    assert [d.field.text for d in news.differences] == ["refunded_cents", "status"]
    assert not news.identical


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("refunded_cents", ("invoice/4412", "refunded_cents")),
        ("invoice/4412/refunded_cents", ("invoice/4412", "refunded_cents")),
        ("invoice/4412.refunded_cents", ("invoice/4412", "refunded_cents")),
        ("invoice/4412 refunded_cents", ("invoice/4412", "refunded_cents")),
        ("invoice/9/currency", ("invoice/9", "currency")),
        ("", ("invoice/4412", "")),
    ],
)
def test_a_path_names_a_field_and_an_object(
    make_plan: MakePlan, path: str, expected: tuple[str, str]
) -> None:
    dead = a_dead(make_plan, conflict={"changed": [{"path": path}]})
    (moved,) = revisions.moved(dead)
    assert (moved.object, moved.field) == expected
    assert moved.planned.text == "not given"


@pytest.mark.parametrize("conflict", [None, {}, {"changed": None}, {"changed": ["odd"]}])
def test_a_conflict_without_fields_is_still_told(make_plan: MakePlan, conflict: Any) -> None:
    dead = a_dead(make_plan, conflict=conflict)
    (cause,) = told(its_successor(make_plan, dead)).causes
    assert cause.moved == []
    assert cause.sentence.startswith("Something moved after revision 1 was planned at ")


@pytest.mark.parametrize(
    ("columns", "begins"),
    [
        ({"status": "expired"}, "Revision 1 expired before it was decided ("),
        (
            {"status": "expired", "approved_at": "2026-03-14T09:31:12Z"},
            "Revision 1 expired before it was sent (",
        ),
        ({"status": "stale"}, "Revision 1 became stale"),
        ({"status": "abandoned"}, "Revision 1 is abandoned."),
        (
            {"status": "failed", "problem": {"detail": "no \u202eaccount"}},
            "billing refused revision 1. no ⟨U+202E⟩account",
        ),
        ({"status": "superseded"}, "support-agent replaced revision 1"),
    ],
)
def test_every_death_has_its_words(
    make_plan: MakePlan, columns: dict[str, Any], begins: str
) -> None:
    dead = a_dead(make_plan, **columns)
    (cause,) = told(its_successor(make_plan, dead)).causes
    assert cause.sentence.startswith(begins)


def test_a_reviewer_s_wish_is_quoted(make_plan: MakePlan, grace: User) -> None:
    dead = a_dead(make_plan, status="changes_requested")
    Decision.objects.create(
        plan=dead, round=1, person=grace, verdict="request_changes", note="only half"
    )
    (cause,) = told(its_successor(make_plan, dead)).causes
    assert cause.sentence == "grace requested changes: “only half”"


def test_a_fresh_plan_on_a_person_s_wish_says_so(make_plan: MakePlan) -> None:
    old = a_dead(make_plan, status="superseded")
    new = its_successor(make_plan, old)
    Replan.objects.create(
        intent=new.intent, cause="person", mode="server", status="done", new_plan=new
    )
    (cause,) = told(new).causes
    assert cause.sentence.startswith("A reviewer asked for a fresh plan")


def test_a_fresh_plan_that_the_page_asked_for_blames_nobody(make_plan: MakePlan) -> None:
    old = a_dead(make_plan, status="superseded")
    new = its_successor(make_plan, old)
    replan = Replan.objects.create(
        intent=new.intent, cause="opened", mode="server", status="done", new_plan=new
    )
    old.decide_by = replan.created_at + timedelta(seconds=65)
    old.save()
    (cause,) = told(new).causes
    assert cause.sentence == (
        "A reviewer opened revision 1 with 1 min left, so the app made a fresh plan."
    )


def test_an_identical_revision_says_that_nothing_changed(make_plan: MakePlan) -> None:
    news = told(its_successor(make_plan, a_dead(make_plan, status="expired")))
    assert news.identical
    assert news.headline == ("480.00 USD", "480.00 USD")
    assert not news.headline_moved


def test_changes_that_only_one_revision_has_are_named(make_plan: MakePlan) -> None:
    dead = a_dead(make_plan)
    news = told(its_successor(make_plan, dead, actions=SMALLER[:1]))
    assert [(d.field.text, d.now is None) for d in news.differences] == [
        ("refunded_cents", False),
        ("status", True),
    ]


@pytest.mark.parametrize(("before", "after"), [(1, True), (1, "1"), ("caf\u00e9", "cafe\u0301")])
def test_values_that_look_equal_differ(make_plan: MakePlan, before: Any, after: Any) -> None:
    action = SMALLER[0] | {"field": "name"}
    dead = a_dead(make_plan, actions=[action | {"to": before}])
    news = told(its_successor(make_plan, dead, actions=[action | {"to": after}]))
    (difference,) = news.differences
    assert bool(difference.twin) is (before == "caf\u00e9")


def test_other_inputs_and_another_risk_are_news(make_plan: MakePlan) -> None:
    dead = a_dead(make_plan)
    new = its_successor(make_plan, dead, inputs={"amount_cents": 1, "invoice_id": "4412"})
    Plan.objects.filter(pk=new.pk).update(risk="critical")
    new.refresh_from_db()
    assert told(new).elsewhere == [
        "The agent's inputs are not the same.",
        "The risk is now critical, it was high.",
    ]


def test_the_comparison_starts_at_the_revision_that_was_seen(make_plan: MakePlan) -> None:
    first = a_dead(make_plan, conflict={"changed": CHANGED})
    second = its_successor(make_plan, first, status="expired", actions=SMALLER)
    third = its_successor(make_plan, second, actions=SMALLER)
    assert told(third).since == second
    assert told(third).identical
    news = told(third, seen=first)
    assert news.since == first
    assert [bool(cause.moved) for cause in news.causes] == [True, False]
    assert news.headline == ("280.00 USD", "480.00 USD")


def test_a_first_revision_has_no_news(make_plan: MakePlan) -> None:
    plan = make_plan()
    assert revisions.news(plan, [plan], None) is None


def test_it_says_how_long_the_fresh_plan_took(make_plan: MakePlan) -> None:
    dead = a_dead(make_plan, closed_at=clock() - timedelta(seconds=125))
    assert told(its_successor(make_plan, dead)).again == "Re-planned 2 min later"

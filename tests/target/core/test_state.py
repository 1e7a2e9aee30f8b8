"""What a plan depends on: the world that moved is named, and a plan that came to nothing too."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from countersign_target import Action, Planned, Problem, not_allowed, nothing_to_change
from tests.target.core.owner import UPDATE, Owner, effects
from tests.target.crib import Crib, code


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        # By the actions' origin, where nothing is covered.
        (Owner(), Owner(actions=[Action("update", "thing/1", "size", 5, 6)]), [("size", 1, 5)]),
        # By what is covered, and by nothing else of that object.
        (
            Owner(covers={"thing/1": {"size": 1, "owner": "ada"}}),
            Owner(covers={"thing/1": {"size": 1, "owner": "otto"}}),
            [("owner", "ada", "otto")],
        ),
        (
            Owner(covers={"thing/1": {"owner": "ada"}}),
            Owner(
                covers={"thing/1": {"owner": "otto"}},
                actions=[Action("update", "thing/1", "size", 5, 6)],
            ),
            [("owner", "ada", "otto")],
        ),
        # An origin that nobody covered still counts.
        (
            Owner(covers={"thing/1": {"owner": "ada"}}),
            Owner(
                covers={"thing/1": {"owner": "ada"}},
                actions=[Action("update", "thing/1", "size", 5, 6)],
            ),
            [("size", 1, 5)],
        ),
        # Another object that the plan only looks at.
        (
            Owner(covers={"rate/eur": {"cents": 108}}),
            Owner(covers={"rate/eur": {"cents": 109}}),
            [("cents", 108, 109)],
        ),
        # It refuses now: what it had covered says why.
        (
            Owner(covers={"thing/1": {"size": 1}}),
            Owner(covers={"thing/1": {"size": 2}}, refuses=nothing_to_change("So already.")),
            [("size", 1, 2)],
        ),
        # It refuses before it covers anything.
        (Owner(), Owner(refuses=Problem(404, "gone", "Gone.")), [("plan", "possible", "gone")]),
        # A truth value is no number.
        (
            Owner(covers={"thing/1": {"size": 1}}),
            Owner(covers={"thing/1": {"size": True}}),
            [("size", 1, True)],
        ),
    ],
)
def test_what_moved_is_named(
    crib: Crib, owner: Owner, before: Owner, after: Owner, changed: list[tuple[str, Any, Any]]
) -> None:
    owner.__dict__.update(vars(before))
    plan = crib.plan()
    owner.__dict__.update(vars(after))
    answer = crib.commit(plan)
    assert code(answer) == (409, "state-changed")
    named = json.loads(answer.text)["changed"]
    assert [(each["path"], each["planned"], each["current"]) for each in named] == changed
    assert (crib.status(plan), effects(crib)) == ("not_applied", 0)


@pytest.mark.parametrize(
    "after",
    [
        Owner(covers={"thing/1": {"size": 1.0}}),
        # The actions' other end is not the world: what was approved is what is applied.
        Owner(covers={"thing/1": {"size": 1}}, actions=[Action("update", "thing/1", "size", 1, 9)]),
    ],
)
def test_what_did_not_move_is_applied_as_it_was_planned(
    crib: Crib, owner: Owner, after: Owner
) -> None:
    owner.covers = {"thing/1": {"size": 1}}
    plan = crib.plan(a=1)
    owner.__dict__.update(vars(after) | {"plans": []})
    assert crib.commit(plan, "key-of-the-plan-" + plan["plan_id"]).status == 200
    [given] = owner.plans
    assert given.actions == plan["actions"]
    assert (given.inputs, given.state) == ({"a": 1}, {"thing/1": {"size": 1}})
    assert given.idempotency_key == "key-of-the-plan-" + plan["plan_id"]
    assert effects(crib) == 1


def test_details_are_for_apply_alone(crib: Crib, owner: Owner) -> None:
    owner.actions = Planned([UPDATE], {"etag": '"7"', "at": datetime(2026, 1, 1, tzinfo=UTC)})
    plan = crib.plan()
    assert "etag" not in json.dumps(plan)
    assert crib.commit(plan).status == 200
    assert owner.plans[0].details == {"etag": '"7"', "at": "2026-01-01T00:00:00.000Z"}


def test_no_actions_say_that_nothing_is_to_change(crib: Crib, owner: Owner) -> None:
    plan = crib.plan()
    owner.actions = []
    assert code(crib.dry_run()) == (422, "nothing-to-change")
    assert code(crib.commit(plan)) == (409, "state-changed")


def test_an_owners_refusal_goes_out_as_it_is(crib: Crib, owner: Owner) -> None:
    owner.refuses = not_allowed(("/size", "is too much"))
    answer = crib.dry_run()
    assert json.loads(answer.text)["errors"] == [{"pointer": "/size", "detail": "is too much"}]
    assert json.loads(answer.text)["type"] == "urn:problem:crib:invalid-request"

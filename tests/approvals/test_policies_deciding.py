"""What a decision has to satisfy where policies demand it (B-9, B-11)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User

from approvals import oversight
from approvals.decisions import Ballot, decide, withdraw
from approvals.models import Decision, Policy
from audit.models import Event
from plans import errors
from plans.clock import clock
from plans.models import Plan
from plans.status import Status
from tests.approvals.demanding import approve, policy, refused
from tests.approvals.paper_plans import MakePlan

pytestmark = pytest.mark.django_db


def test_two_distinct_people(make_plan: MakePlan, ada: User, grace: User) -> None:
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    first = approve(ada, plan)
    assert (first.status, first.approvals_given, first.next_attempt_at) == ("pending", 1, None)
    assert (approve(ada, plan).approvals_given, Decision.objects.count()) == (1, 1)
    assert approve(grace, plan).status == Status.APPROVED
    assert Plan.objects.get().approvals_given == 2


def test_a_person_in_two_groups_counts_once(
    make_plan: MakePlan, ada: User, grace: User, leads: Group
) -> None:
    policy("large", require={"reviewers": 1, "leads": 1})
    plan = make_plan()
    assert approve(grace, plan).status == Status.PENDING
    assert approve(ada, plan).status == Status.APPROVED


def test_an_approval_that_would_not_count_is_refused(
    make_plan: MakePlan, ada: User, grace: User, leads: Group
) -> None:
    policy("leads decide", require={"leads": 1})
    plan = make_plan()
    told = refused(errors.NotAllowed, ada, plan)
    assert "it needs somebody of leads" in told.detail
    assert approve(grace, plan).status == Status.APPROVED


def test_whoever_cannot_approve_can_still_say_no(
    make_plan: MakePlan, ada: User, leads: Group
) -> None:
    policy("leads decide", require={"leads": 1})
    plan = make_plan()
    assert decide(ada, plan.pk, Ballot("reject", "no", plan.digest)).status == Status.REJECTED


def test_the_agents_owner_never_counts(make_plan: MakePlan, dana: User, ada: User) -> None:
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    refused(errors.NotAllowed, dana, plan)
    assert approve(ada, plan).status == Status.PENDING


def test_an_approver_who_left_makes_room(
    make_plan: MakePlan, ada: User, grace: User, otto: User
) -> None:
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    otto.groups.add(Group.objects.get(name="reviewers"))
    approve(ada, plan)
    ada.groups.clear()
    assert (approve(grace, plan).status, Plan.objects.get().approvals_given) == ("pending", 1)
    assert approve(otto, plan).status == Status.APPROVED


def test_who_comes_back_does_not_block_the_rest(
    make_plan: MakePlan, ada: User, grace: User, otto: User
) -> None:
    """Complete without a last click: the next reviewer's approval is what sends it."""
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    reviewers = Group.objects.get(name="reviewers")
    otto.groups.add(reviewers)
    approve(ada, plan)
    ada.groups.clear()
    approve(grace, plan)
    ada.groups.add(reviewers)
    assert approve(otto, plan).status == Status.APPROVED


def test_a_note_where_a_policy_asks_for_one(make_plan: MakePlan, ada: User) -> None:
    policy("notes", note_required=True)
    plan = make_plan()
    assert refused(errors.NoteRequired, ada, plan, note=" ").errors[0].pointer == "/note"
    assert approve(ada, plan, "checked with the customer").status == Status.APPROVED


def test_a_sign_in_where_a_policy_asks_for_one(make_plan: MakePlan, ada: User) -> None:
    policy("step up", step_up=True)
    plan = make_plan()
    refused(errors.StepUpRequired, ada, plan)
    assert approve(ada, plan, stepped_up=True).status == Status.APPROVED
    assert Decision.objects.get().stepped_up


@pytest.mark.parametrize("looked", [None, timedelta(seconds=-30), timedelta(seconds=3)])
def test_a_longer_look_where_a_policy_asks_for_one(
    make_plan: MakePlan, ada: User, looked: timedelta | None
) -> None:
    policy("dwell", dwell_seconds=10)
    plan = make_plan()
    refused(errors.DecidedTooSoon, ada, plan, shown_at=looked and clock() - looked)
    assert approve(ada, plan, shown_at=clock() - timedelta(seconds=11)).status == "approved"


def test_saying_no_is_asked_for_nothing_of_it(make_plan: MakePlan, ada: User) -> None:
    policy("all of it", note_required=True, step_up=True, dwell_seconds=60, deny=True)
    plan = make_plan()
    assert decide(ada, plan.pk, Ballot("reject", "no", plan.digest)).status == Status.REJECTED


def test_a_denied_plan_waits_and_nobody_can_approve_it(make_plan: MakePlan, ada: User) -> None:
    """B-7: the target's own values may deny what the agent's words did not."""
    policy("never so much", deny=True)
    plan = make_plan()
    told = refused(errors.PolicyDenied, ada, plan)
    assert told.detail == "The policy “never so much” does not allow such a plan."
    assert Plan.objects.get().status == Status.PENDING


def test_a_policy_edited_while_it_waits_starts_a_new_round(
    make_plan: MakePlan, ada: User, grace: User
) -> None:
    """B-11: what was approved under other demands is asked again."""
    row = policy("large", require={"reviewers": 2})
    plan = make_plan()
    approve(ada, plan)
    Policy.objects.filter(pk=row.pk).update(note_required=True)
    now = oversight.current(Plan.objects.with_names().get())
    assert (now.round, now.approvals_given, now.digest != plan.digest) == (2, 0, True)
    event = Event.objects.get(action="plan.reassessed")
    assert (event.details["voided_approvals"], event.actor_kind) == (1, "system")
    refused(errors.DigestMismatch, grace, plan)
    assert approve(ada, now, "yes").approvals_given == 1
    assert approve(grace, now, "yes").status == Status.APPROVED


def test_nothing_changes_while_the_world_stands_still(make_plan: MakePlan, ada: User) -> None:
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    approve(ada, plan)
    assert oversight.current(Plan.objects.with_names().get()).round == 1
    assert not Event.objects.filter(action="plan.reassessed").exists()


def test_an_approver_takes_it_back_and_may_decide_again(
    make_plan: MakePlan, ada: User, grace: User
) -> None:
    """B-9: the plan goes on waiting, and the row stays as history."""
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    approve(ada, plan)
    after = withdraw(ada, plan.pk, "wrong customer")
    assert (after.status, after.approvals_given, after.round) == ("pending", 0, 1)
    event = Event.objects.get(action="decision.withdrawn")
    assert (event.actor_label, event.details) == ("ada", {"note": "wrong customer", "round": 1})
    assert (Decision.objects.count(), Decision.with_withdrawn.count()) == (0, 1)
    assert approve(grace, plan).status == Status.PENDING
    assert approve(ada, plan).status == Status.APPROVED
    assert Decision.with_withdrawn.filter(person=ada).count() == 2


def test_only_ones_own_and_only_in_time(make_plan: MakePlan, ada: User, grace: User) -> None:
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    approve(ada, plan)
    with pytest.raises(errors.NotAllowed):
        withdraw(grace, plan.pk, "no")
    with pytest.raises(errors.NoteRequired):
        withdraw(ada, plan.pk, " ")
    Plan.objects.update(decide_by=clock())
    with pytest.raises(errors.PlanExpired):
        withdraw(ada, plan.pk, "no")
    assert Decision.objects.count() == 1

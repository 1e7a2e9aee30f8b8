"""One verdict of one person, in the order that B-3 fixes; every refusal leaves an event."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from approvals.decisions import Ballot, decide, withdraw
from approvals.models import Decision
from audit.models import Event
from plans import errors
from plans.clock import clock
from plans.errors import Problem
from plans.models import Attempt, Intent, Plan, Replan
from plans.status import Status

pytestmark = pytest.mark.django_db
type Make = Callable[..., Plan]


def _approve(person: User, plan: Plan, note: str = "") -> Plan:
    return decide(person, plan.pk, Ballot("approve", note, plan.digest))


def _refused(problem: type[Problem], person: User, plan: Plan, ballot: Ballot) -> Problem:
    """The refusal; nothing was decided, and the trail has it (SEC-27)."""
    before = Decision.objects.count()
    with pytest.raises(problem) as refusal:
        decide(person, plan.pk, ballot)
    assert Decision.objects.count() == before
    event = Event.objects.filter(action="decision.refused").latest("id")
    assert (event.actor_label, event.details["code"]) == (person.username, problem.code)
    assert event.plan_id == plan.plan_id
    return refusal.value


def test_an_approval_makes_the_commit_due_at_once(make_plan: Make, ada: User) -> None:
    plan = _approve(ada, make_plan(), " looks right ")
    assert (plan.status, plan.approvals_given) == (Status.APPROVED, 1)
    assert plan.next_attempt_at == plan.approved_at
    assert plan.approved_at is not None
    assert plan.approved_at <= clock()
    decision = Decision.objects.get()
    assert (decision.person, decision.verdict, decision.note) == (ada, "approve", "looks right")
    assert (decision.shown_digest, decision.round) == (plan.digest, 1)
    recorded, approved = Event.objects.order_by("id")
    assert recorded.details == {
        "verdict": "approve",
        "note": "looks right",
        "round": 1,
        "shown_digest": plan.digest,
    }
    assert (approved.action, approved.actor_kind) == ("plan.approved", "person")


@pytest.mark.parametrize(
    ("verdict", "status"),
    [("reject", Status.REJECTED), ("request_changes", Status.CHANGES_REQUESTED)],
)
def test_one_no_closes_the_plan(
    make_plan: Make, ada: User, grace: User, verdict: str, status: Status
) -> None:
    """B-9; changes go to the agent with the reviewer's words (R-1), a rejection ends it."""
    plan = decide(ada, (old := make_plan()).pk, Ballot(verdict, "too much", old.digest))
    assert (plan.status, plan.token) == (status, None)
    replans = list(Replan.objects.values_list("mode", "reason"))
    assert replans == ([("agent", "too much")] if verdict == "request_changes" else [])
    told = _refused(errors.AlreadyDecided, grace, plan, Ballot("approve", "", plan.digest))
    assert told.members["decided_by"] == "ada"
    assert told.members["verdict"] == verdict
    assert told.members["decided_at"].endswith("Z")


def test_the_same_persons_repeat_changes_nothing(make_plan: Make, ada: User) -> None:
    """B-4, FM-55: a double click, two tabs, the back button."""
    plan = _approve(ada, make_plan())
    events = Event.objects.count()
    assert _approve(ada, plan).status == Status.APPROVED
    Plan.objects.update(status=Status.COMMITTED, token=None, commit_body=None)
    assert _approve(ada, plan).status == Status.COMMITTED
    assert (Decision.objects.count(), Event.objects.count()) == (1, events)


def test_the_same_persons_other_verdict_comes_too_late(make_plan: Make, ada: User) -> None:
    plan = _approve(ada, make_plan())
    _refused(errors.AlreadyDecided, ada, plan, Ballot("reject", "no", plan.digest))


def test_a_quorum_counts_distinct_people(make_plan: Make, ada: User, grace: User) -> None:
    plan = make_plan()
    Plan.objects.update(approvals_required=2)
    assert (_approve(ada, plan).status, _approve(ada, plan).approvals_given) == ("pending", 1)
    _refused(errors.AlreadyDecided, ada, plan, Ballot("reject", "no", plan.digest))
    assert _approve(grace, plan).status == Status.APPROVED


def test_one_no_outweighs_an_earlier_yes(make_plan: Make, ada: User, grace: User) -> None:
    plan = make_plan()
    Plan.objects.update(approvals_required=2)
    _approve(ada, plan)
    plan = decide(grace, plan.pk, Ballot("reject", "no", plan.digest))
    assert plan.status == Status.REJECTED


def test_a_new_round_asks_everybody_again(make_plan: Make, ada: User) -> None:
    """B-11."""
    plan = _approve(ada, make_plan())
    Plan.objects.update(status=Status.PENDING, round=2, approvals_given=0)
    assert _approve(ada, plan).status == Status.APPROVED
    assert list(Decision.objects.order_by("id").values_list("round", flat=True)) == [1, 2]


@pytest.mark.parametrize(
    ("ballot", "problem"),
    [
        ({"verdict": "approved"}, errors.InvalidField),
        ({"verdict": ""}, errors.InvalidField),
        ({"verdict": "\x00"}, errors.InvalidField),
        ({"verdict": "reject"}, errors.NoteRequired),
        ({"verdict": "request_changes", "note": " \n"}, errors.NoteRequired),
        ({"note": "x" * 4001}, errors.InvalidNote),
        ({"note": "a\x00b"}, errors.InvalidNote),
        ({"shown_digest": ""}, errors.DigestMissing),
        ({"shown_digest": "0" * 64}, errors.DigestMismatch),
    ],
)
def test_a_ballot_that_cannot_stand(
    make_plan: Make, ada: User, ballot: dict[str, str], problem: type[Problem]
) -> None:
    plan = make_plan()
    whole: dict[str, Any] = {"verdict": "approve", "note": "", "shown_digest": plan.digest}
    _refused(problem, ada, plan, Ballot(**(whole | ballot)))
    assert Plan.objects.get().status == Status.PENDING


def test_upper_case_is_another_digest(make_plan: Make, ada: User) -> None:
    plan = make_plan()
    for shown in (plan.digest.upper(), f" {plan.digest}"):
        _refused(errors.DigestMismatch, ada, plan, Ballot("approve", "", shown))


def test_dead_is_decide_by(make_plan: Make, ada: User) -> None:
    """B-3: 410, and the plan is expired by the clock, not by the person (S-2)."""
    plan = make_plan(decide_by=clock())
    refusal = _refused(errors.PlanExpired, ada, plan, Ballot("approve", "", plan.digest))
    assert (refusal.status, refusal.headers["Cache-Control"]) == (410, "no-store")
    assert Plan.objects.get().status == Status.EXPIRED
    expired = Event.objects.get(action="plan.expired")
    assert (expired.actor_kind, expired.actor_id) == ("system", "clock")
    assert Replan.objects.get().cause == "expired"
    _refused(errors.PlanExpired, ada, plan, Ballot("reject", "no", plan.digest))


def test_an_expiry_that_nobody_saw_often_is_parked(make_plan: Make, ada: User) -> None:
    plan = make_plan(decide_by=clock())
    Intent.objects.update(unattended_replans=3)
    _refused(errors.PlanExpired, ada, plan, Ballot("approve", "", plan.digest))
    assert Replan.objects.get().status == "parked"


def test_time_goes_before_identity(make_plan: Make, charlie: User) -> None:
    plan = make_plan(decide_by=clock())
    _refused(errors.PlanExpired, charlie, plan, Ballot("approve", "", plan.digest))


def _switched_off(person: User) -> None:
    User.objects.filter(pk=person.pk).update(is_active=False)


def _out_of_the_group(person: User) -> None:
    Group.objects.get(name="reviewers").user_set.remove(person)


def _gone(person: User) -> None:
    User.objects.filter(pk=person.pk).delete()


@pytest.mark.parametrize("change", [_switched_off, _out_of_the_group, _gone])
def test_rights_are_those_of_now(
    make_plan: Make, ada: User, change: Callable[[User], None]
) -> None:
    """SEC-6: never those of the session."""
    plan = make_plan()
    change(ada)
    _refused(errors.NotAllowed, ada, plan, Ballot("approve", "", plan.digest))


def test_the_agents_owner_does_not_decide(make_plan: Make, dana: User, mona: User) -> None:
    plan = make_plan()
    for person in (dana, mona):
        _refused(errors.NotAllowed, person, plan, Ballot("approve", "", plan.digest))


def test_an_unverified_plan_is_approved_only_where_the_target_allows_it(
    make_plan: Make, ada: User
) -> None:
    """T-2; rejecting it is always possible."""
    plan = make_plan(verification=Plan.Verification.UNAVAILABLE)
    _refused(errors.UnverifiedPlan, ada, plan, Ballot("approve", "", plan.digest))
    plan.target.allow_unverified = True
    plan.target.save()
    assert _approve(ada, plan).status == Status.APPROVED


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (Status.VERIFYING, errors.NotDecidable),
        (Status.COMMITTING, errors.CommitInFlight),
        (Status.UNKNOWN, errors.CommitInFlight),
        (Status.UNRESOLVED, errors.CommitInFlight),
        (Status.STALE, errors.NotDecidable),
        (Status.CONFLICTED, errors.NotDecidable),
        (Status.ABANDONED, errors.NotDecidable),
        (Status.MISMATCHED, errors.NotDecidable),
        (Status.EXPIRED, errors.PlanExpired),
    ],
)
def test_only_a_pending_plan_is_decided(
    make_plan: Make, ada: User, status: Status, problem: type[Problem]
) -> None:
    plan = make_plan(status=status)
    refusal = _refused(problem, ada, plan, Ballot("approve", "", plan.digest))
    assert refusal.members["plan_status"] == status


def test_a_superseded_plan_names_its_successor(make_plan: Make, ada: User) -> None:
    plan = make_plan(status=Status.SUPERSEDED)
    successor = make_plan(replaces=plan)
    refusal = _refused(errors.Superseded, ada, plan, Ballot("approve", "", plan.digest))
    assert refusal.members["replaced_by"] == successor.plan_id


# ── Taking it back (B-9, FM-44) ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [Status.APPROVED, Status.COMMITTING])
def test_an_approver_takes_it_back_while_nothing_was_sent(
    make_plan: Make, ada: User, status: Status
) -> None:
    plan = _approve(ada, make_plan())
    if status == Status.COMMITTING:
        Plan.objects.update(status=status)
        Attempt.objects.create(plan=plan, number=1, lease_until=clock(), outcome="not_sent")
    plan = withdraw(ada, plan.pk, "wrong invoice")
    assert (plan.status, plan.token, plan.next_attempt_at) == (Status.REJECTED, None, None)
    event = Event.objects.get(action="plan.withdrawn")
    assert (event.actor_label, event.details) == ("ada", {"note": "wrong invoice"})


@pytest.mark.parametrize("outcome", ["open", "unknown", "retry_later"])
def test_nothing_is_taken_back_from_a_commit_in_flight(
    make_plan: Make, ada: User, outcome: str
) -> None:
    plan = _approve(ada, make_plan())
    Plan.objects.update(status=Status.COMMITTING)
    later = clock() + timedelta(minutes=1)
    Attempt.objects.create(plan=plan, number=1, lease_until=later, outcome=outcome)
    with pytest.raises(errors.CommitInFlight):
        withdraw(ada, plan.pk, "wrong invoice")
    assert Plan.objects.get().status == Status.COMMITTING
    refused = Event.objects.get(action="decision.refused").details
    assert refused == {"verdict": "withdraw", "code": "commit-in-flight"}


def test_only_who_approved_takes_it_back_and_says_why(
    make_plan: Make, ada: User, grace: User
) -> None:
    plan = _approve(ada, make_plan())
    with pytest.raises(errors.NotAllowed):
        withdraw(grace, plan.pk, "no")
    for note, problem in ((" ", errors.NoteRequired), ("\x00", errors.InvalidNote)):
        with pytest.raises(problem):
            withdraw(ada, plan.pk, note)
    withdraw(ada, plan.pk, "no")
    with pytest.raises(errors.NotDecidable):
        withdraw(ada, plan.pk, "no")

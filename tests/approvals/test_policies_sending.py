"""The policies of the send, the deny at submission, and everybody at once (T-3, B-7, B-11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from approvals.decisions import Ballot, decide, withdraw
from approvals.models import Decision, Policy
from approvals.oversight import ReviewOversight
from audit.models import Event
from plans import custody, errors, expiry
from plans.clock import clock
from plans.committing import claim_attempt
from plans.enrolment import commit_body
from plans.intents import IntentRequest, open_intent
from plans.models import Agent, Intent, Operation, Plan, Target
from plans.oversight import oversight
from plans.problem import Problem
from plans.status import Status
from plans.sweeper import carry_out
from tests.approvals.demanding import LARGE, approve, policy
from tests.approvals.races.racing import at_once
from tests.faults.scripted_target import ScriptedTarget
from tests.plans.engine import TOKEN, actions, fresh

type Make = Callable[..., Plan]

# ── Before the send ─────────────────────────────────────────────────────────────────────────


@pytest.fixture
def sendable(db: None, make_plan: Make) -> Callable[..., Plan]:
    """A plan that could be committed as soon as it is approved."""

    def make() -> Plan:
        made = make_plan()
        body = custody.encrypt(commit_body(TOKEN, made.input_fingerprint))
        secrets = {"token": custody.encrypt(TOKEN.encode()), "commit_body": body}
        Plan.objects.filter(pk=made.pk).update(**secrets, **oversight().assess(made).columns())
        return fresh(made)

    return make


def reopened(plan: Plan) -> str:
    """The commit was due and was not sent: a new round, and the reason that the trail tells."""
    assert claim_attempt(plan.pk) is None
    now = fresh(plan)
    assert (now.status, now.round, now.approvals_given) == (Status.PENDING, plan.round + 1, 0)
    assert (now.approved_at, now.next_attempt_at) == (None, None)
    reason: str = Event.objects.filter(action="plan.reopened").latest("id").details["reason"]
    return reason


def test_an_approver_who_lost_the_group_sends_it_back(
    sendable: Make, ada: User, grace: User, otto: User
) -> None:
    """B-11, SEC-8: everybody is asked again, and can answer."""
    policy("large", require={"reviewers": 2})
    plan = sendable()
    approve(ada, plan)
    approve(grace, plan)
    ada.groups.clear()
    assert reopened(plan) == "ada approved, but does not review billing any more."
    otto.groups.add(Group.objects.get(name="reviewers"))
    again = fresh(plan)
    assert (approve(grace, again).status, approve(otto, again).status) == ("pending", "approved")
    assert claim_attempt(plan.pk) is not None
    assert list(Decision.objects.order_by("id").values_list("round", flat=True)) == [1, 1, 2, 2]


def test_a_policy_s_group_is_read_afresh(sendable: Make, ada: User, grace: User) -> None:
    policy("leads decide", require={"leads": 1})
    plan = sendable()
    approve(grace, plan)
    grace.groups.remove(Group.objects.get(name="leads"))
    assert reopened(plan) == "0 of 1 approvals were given on what is shown now."


@pytest.mark.fm(49)
@pytest.mark.parametrize(
    ("tighter", "reason"),
    [
        ({"require": {"reviewers": 2}}, "1 of 2 approvals were given on what is shown now."),
        ({"note_required": True}, "ada approved, but gave no note, which a policy asks for."),
        ({"dwell_seconds": 60}, "ada approved, but looked for less than 60 s"),
        ({"step_up": True}, "ada approved, but had not signed in shortly before"),
        ({"deny": True}, "The policy “tighter” does not allow such a plan."),
        ({"raise_risk": "critical"}, "What was approved is not what would be sent now."),
    ],
)
def test_policies_tightened_after_the_approval_send_it_back(
    sendable: Make, ada: User, tighter: dict[str, Any], reason: str
) -> None:
    plan = approve(ada, sendable(), shown_at=clock() - timedelta(seconds=5))
    policy("tighter", **tighter)
    assert reopened(plan).startswith(reason)
    assert fresh(plan).digest == ReviewOversight().assess(plan).digest


def test_an_unclear_policy_stops_the_send(sendable: Make, ada: User) -> None:
    """SEC-28."""
    plan = approve(ada, sendable())
    policy("broken", "delta.fee_cents > 0")
    assert reopened(plan) == "What was approved is not what would be sent now."
    assert fresh(plan).risk == "critical"


@pytest.mark.parametrize("satisfied", ["note", "look", "looser", "gone", "calmer"])
def test_approvals_that_satisfy_the_policies_of_now_are_sent(
    sendable: Make, ada: User, grace: User, satisfied: str
) -> None:
    """B-7 asks whether they are satisfied, not whether they are the same."""
    row = policy("large", require={"reviewers": 2}, raise_risk="critical")
    plan = sendable()
    for person in (ada, grace):
        approve(person, plan, "checked", shown_at=clock() - timedelta(seconds=20))
    changes: dict[str, dict[str, Any]] = {
        "note": {"note_required": True},
        "look": {"dwell_seconds": 15},
        "looser": {"require": [{"group": "reviewers", "count": 1}]},
        "gone": {"active": False},
        "calmer": {"raise_risk": ""},
    }
    Policy.objects.filter(pk=row.pk).update(**changes[satisfied])
    assert claim_attempt(plan.pk) is not None


# ── Deny at submission ──────────────────────────────────────────────────────────────────────


def ask(agent: Agent, amount: int = 48000) -> Intent:
    value = {"amount_cents": amount, "invoice_id": "4412"}
    text = f'{{"amount_cents":{amount},"invoice_id":"4412"}}'.encode()
    return open_intent(agent, IntentRequest("billing", "refund", "task-1", text, value))


@pytest.mark.django_db
def test_an_intent_that_its_inputs_deny_is_refused(refund: Operation, support_agent: Agent) -> None:
    policy("never so much", "inputs.amount_cents > 40000", deny=True)
    with pytest.raises(errors.PolicyDenied, match="never so much"):
        ask(support_agent)
    assert not Intent.objects.exists()
    assert ask(support_agent, 100).pk


@pytest.mark.django_db
@pytest.mark.parametrize("when", [LARGE, "delta.fee_cents > 1", "inputs.none > 1", "1/0 > 1"])
def test_what_nobody_knows_yet_denies_nothing(
    refund: Operation, support_agent: Agent, when: str
) -> None:
    """The target's values are judged once they have been read."""
    policy("never so much", when, deny=True)
    assert ask(support_agent).pk


# ── Everybody at once ───────────────────────────────────────────────────────────────────────


@pytest.fixture
def target(billing: Target) -> Iterator[ScriptedTarget]:
    with ScriptedTarget() as scripted:
        billing.base_url = scripted.base_url
        billing.save()
        yield scripted


@pytest.fixture
def crowd(ada: User) -> list[User]:
    others = [User.objects.create(username=f"reviewer-{n}") for n in range(1, 6)]
    for person in others:
        person.groups.set(ada.groups.all())
    return [ada, *others]


def vote(person: User, plan: Plan) -> Callable[[], object]:
    return lambda: decide(person, plan.pk, Ballot("approve", "", plan.digest))


def codes(results: list[object]) -> list[str]:
    return sorted(result.code for result in results if isinstance(result, Problem))


@pytest.mark.django_db(transaction=True)
def test_six_approve_where_two_are_asked(
    target: ScriptedTarget, sendable: Make, crowd: list[User]
) -> None:
    policy("large", require={"reviewers": 2})
    plan = sendable()
    results = at_once(*[vote(person, plan) for person in crowd])
    assert codes(results) == ["already-decided"] * 4
    assert (Decision.objects.count(), fresh(plan).approvals_given) == (2, 2)
    carry_out(plan.pk)
    assert (fresh(plan).status, target.applications) == (Status.COMMITTED, [plan.plan_id])
    assert actions(plan).count("plan.approved") == 1


@pytest.mark.django_db(transaction=True)
def test_one_person_in_two_groups_clicks_six_times(
    target: ScriptedTarget, sendable: Make, grace: User
) -> None:
    policy("large", require={"reviewers": 1, "leads": 1})
    plan = sendable()
    results = at_once(*[vote(grace, plan)] * 6)
    assert codes(results) == []
    assert (Decision.objects.count(), fresh(plan).status) == (1, Status.PENDING)


@pytest.mark.django_db(transaction=True)
def test_a_withdrawal_against_the_last_approval(
    target: ScriptedTarget, sendable: Make, crowd: list[User]
) -> None:
    """First in time: one of two is left. Second: the plan is closed. Never a send on one."""
    policy("large", require={"reviewers": 2})
    plan = sendable()
    vote(crowd[0], plan)()
    results = at_once(vote(crowd[1], plan), lambda: withdraw(crowd[0], plan.pk, "no"))
    assert codes(results) == []
    now = fresh(plan)
    assert (now.status, now.approvals_given) in [("pending", 1), ("rejected", 2)]
    carry_out(plan.pk)
    assert target.commits == []


@pytest.mark.django_db(transaction=True)
def test_a_policy_tightened_in_the_moment_of_the_approval(
    target: ScriptedTarget, sendable: Make, crowd: list[User]
) -> None:
    plan = sendable()

    def tighten() -> None:
        policy("tighter", require={"reviewers": 2})

    at_once(tighten, vote(crowd[0], plan))
    carry_out(plan.pk)
    assert (fresh(plan).status, target.commits) == (Status.PENDING, [])
    expiry.expire(plan.pk)
    now = fresh(plan)
    assert (now.round, now.approvals_required) == (2, 2)
    for person in crowd[1:3]:
        vote(person, now)()
    carry_out(plan.pk)
    assert fresh(plan).status == Status.COMMITTED

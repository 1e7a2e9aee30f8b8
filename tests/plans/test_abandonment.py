"""Abandoning acts on the intent, and what was sent is the target's to tell (A-8, S-4)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from audit import actors
from audit.models import Event
from plans import custody, errors, expiry, replanning
from plans.abandonment import abandon
from plans.claims import claim
from plans.intents import intent_status
from plans.lifecycle import Verb
from plans.models import Agent, Attempt, Intent, Operation, Plan, Replan
from plans.status import REPLANNED, Status
from plans.submission import submit
from tests.plans.planning_target import PlanningTarget, Reply, Seen, dry_run
from tests.plans.story import (
    at_once,
    fresh,
    moved,
    past,
    pending,
    refused,
    row_counts,
    submission,
    submitted,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("refund")]


def give_up(plan: Plan, reason: str = "other", note: str = "") -> tuple[Plan, bool]:
    actor = actors.agent(plan.agent_id, plan.agent.name)
    return abandon(plan, reason=reason, note=note, actor=actor)


def attempt(plan: Plan, outcome: str = Attempt.Outcome.OPEN) -> Attempt:
    return Attempt.objects.create(plan=plan, number=1, lease_until=plan.expires_at, outcome=outcome)


def status_of(plan: Plan) -> str:
    plan = fresh(plan)
    return intent_status(plan.intent, plan)


@pytest.mark.parametrize("status", [Status.VERIFYING, Status.PENDING, Status.APPROVED])
def test_an_open_plan_ends_with_its_intent(status: Status, make_plan: Callable[..., Plan]) -> None:
    plan, in_flight = give_up(make_plan(status), "intent_changed", "a better idea")
    assert (plan.status, in_flight) == (Status.ABANDONED, False)
    assert (plan.token, plan.commit_body, len(plan.token_sha256)) == (None, None, 64)
    assert (plan.next_attempt_at, plan.verify_at) == (None, None)
    assert (plan.intent.status, plan.intent.closed_reason) == ("abandoned", "intent_changed")
    events = list(Event.objects.order_by("id"))
    assert [e.action for e in events] == ["plan.abandoned", "intent.abandoned"]
    assert events[0].actor_kind == "agent"
    assert events[0].details == {"reason": "intent_changed", "note": "a better idea"}


@pytest.mark.parametrize("outcomes", [[], [Attempt.Outcome.NOT_SENT]])
def test_a_commit_that_never_left_is_still_open(
    outcomes: list[str], make_plan: Callable[..., Plan]
) -> None:
    plan = make_plan(Status.COMMITTING)
    for outcome in outcomes:
        attempt(plan, outcome)
    plan, in_flight = give_up(plan)
    assert (plan.status, in_flight, plan.token) == (Status.ABANDONED, False, None)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (Status.COMMITTING, Attempt.Outcome.OPEN),
        (Status.COMMITTING, Attempt.Outcome.RETRY_LATER),
        (Status.UNKNOWN, Attempt.Outcome.UNKNOWN),
        (Status.UNRESOLVED, Attempt.Outcome.UNKNOWN),
    ],
)
def test_in_flight_it_is_noted_and_the_target_decides(
    status: Status, outcome: str, make_plan: Callable[..., Plan]
) -> None:
    plan = make_plan(status)
    attempt(plan, outcome)
    plan, in_flight = give_up(plan)
    assert (plan.status, in_flight) == (status, True)
    assert plan.token is not None
    assert [e.action for e in Event.objects.all()] == ["plan.abandon_noted"]


def test_noted_and_then_in_conflict_it_is_not_planned_again(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan(Status.COMMITTING)
    attempt(plan)
    give_up(plan)
    plan = moved(plan, Verb.CONFLICT)
    assert not Replan.objects.exists()
    assert status_of(plan) == "abandoned"


def test_noted_and_then_applied_it_is_committed(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan(Status.COMMITTING)
    attempt(plan)
    give_up(plan)
    assert status_of(moved(plan, Verb.COMMIT)) == "committed"


def test_a_committed_plan_stays_as_it_is(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan(Status.COMMITTED)
    before = row_counts()
    plan, in_flight = give_up(plan)
    assert (plan.status, in_flight, plan.intent.status) == (Status.COMMITTED, False, "open")
    assert row_counts() == before


@pytest.mark.parametrize(
    "status", [*sorted(REPLANNED), Status.REJECTED, Status.FAILED, Status.MISMATCHED]
)
def test_a_closed_plan_stays_closed_and_its_intent_ends(
    status: Status, make_plan: Callable[..., Plan]
) -> None:
    plan, in_flight = give_up(make_plan(status))
    assert (plan.status, in_flight) == (status, False)
    assert status_of(plan) == "abandoned"


@pytest.mark.parametrize("waiting", ["queued", "leased", "parked"])
def test_waiting_replans_end_with_the_intent(waiting: str, support_agent: Agent) -> None:
    plan = past(pending(support_agent))
    expiry.expire(plan.pk)
    Replan.objects.update(status=waiting)
    plan, _ = give_up(plan)
    assert (plan.status, Replan.objects.get().status) == (Status.EXPIRED, Replan.Status.CANCELLED)
    assert Event.objects.filter(action="replan.cancelled").count() == 1


def test_an_older_revision_ends_the_intents_latest(support_agent: Agent) -> None:
    old = pending(support_agent)
    new = submitted(support_agent, replaces=old.plan_id)
    answered, _ = give_up(fresh(old))
    assert (answered.pk, answered.status) == (old.pk, Status.SUPERSEDED)
    assert fresh(new).status == Status.ABANDONED


def test_settled_stays_settled(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan(Status.CONFLICTED)
    Intent.objects.update(status=Intent.Status.SETTLED)
    give_up(fresh(plan))
    assert status_of(plan) == "settled"


@pytest.mark.parametrize("status", [Status.PENDING, Status.EXPIRED, Status.COMMITTING])
def test_twice_is_once(status: Status, make_plan: Callable[..., Plan]) -> None:
    plan = make_plan(status)
    if status == Status.COMMITTING:
        attempt(plan)
    first = give_up(plan)
    before = row_counts()
    assert give_up(plan) == first
    assert row_counts() == before


@pytest.mark.django_db(transaction=True)
def test_eight_at_once_are_once(support_agent: Agent) -> None:
    plan = pending(support_agent)
    results = at_once([lambda: give_up(plan)] * 8)
    assert {str(r) for r in results} == {str((plan, False))}
    assert Event.objects.filter(action="plan.abandoned").count() == 1


def test_a_note_with_the_token_is_refused(support_agent: Agent) -> None:
    dry = dry_run()
    plan = pending(support_agent, dry)
    before = row_counts()
    with pytest.raises(errors.TokenElsewhere):
        give_up(plan, note=f"used {dry['plan_token']} already")
    assert row_counts() == before
    assert fresh(plan).status == Status.PENDING


# ── what arrives later ───────────────────────────────────────────────────────────────────────


def destroyed(plan: Plan, token: str) -> bool:
    return (plan.token, plan.commit_body, plan.token_sha256) == (
        None,
        None,
        custody.token_digest(token),
    )


@pytest.mark.django_db(transaction=True)
def test_the_plan_of_a_running_replan_arrives_abandoned(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    plan = past(pending(support_agent))
    expiry.expire(plan.pk)
    dry = dry_run()

    def meanwhile(_: Seen) -> Reply:
        give_up(fresh(plan))
        return Reply(200, dry)

    planning.script["dry_run"] = meanwhile
    assert replanning.run(Replan.objects.get().pk) is None
    late = Plan.objects.get(plan_id=dry["plan_id"])
    assert (late.status, late.revision, late.replaces_id) == (Status.ABANDONED, 2, plan.pk)
    assert destroyed(late, dry["plan_token"])
    assert Replan.objects.get().status == Replan.Status.CANCELLED
    assert Intent.objects.get().status == Intent.Status.ABANDONED


def test_an_agents_answer_to_a_cancelled_replan_arrives_abandoned(
    support_agent: Agent, refund: Operation
) -> None:
    Operation.objects.update(replan="agent")
    refund.refresh_from_db()
    plan = past(pending(support_agent))
    expiry.expire(plan.pk)
    held = claim(support_agent)
    assert held is not None
    give_up(fresh(plan))
    dry = dry_run()
    late, created = submit(support_agent, submission(dry, replan_id=held.pk))
    late = fresh(late)
    assert (created, late.status, late.intent_id) == (True, Status.ABANDONED, plan.intent_id)
    assert destroyed(late, dry["plan_token"])
    assert late.intent.status == Intent.Status.ABANDONED


def test_a_late_replacement_of_an_expired_plan_arrives_abandoned(support_agent: Agent) -> None:
    plan = past(pending(support_agent))
    expiry.expire(plan.pk)
    give_up(fresh(plan))
    dry = dry_run()
    late = fresh(submitted(support_agent, dry, replaces=plan.plan_id))
    assert late.status == Status.ABANDONED
    assert destroyed(late, dry["plan_token"])


def test_to_replace_what_was_abandoned_is_to_want_it_again(support_agent: Agent) -> None:
    plan = pending(support_agent)
    give_up(plan)
    Intent.objects.update(lives_until=plan.received_at)
    new = fresh(submitted(support_agent, replaces=plan.plan_id))
    assert (new.status, new.intent.status) == (Status.VERIFYING, Intent.Status.OPEN)
    assert new.intent.lives_until > new.received_at


def test_nothing_follows_a_commit_in_flight(support_agent: Agent, refund: Operation) -> None:
    plan = pending(support_agent)
    replan = Replan.objects.create(intent=plan.intent, cause="person", mode="agent")
    plan = moved(moved(plan, Verb.APPROVE), Verb.START_ATTEMPT)
    attempt(plan)
    give_up(plan)
    refusal = refused(support_agent, submission(replan_id=replan.pk))
    assert refusal.code == "predecessor-unresolved"


@pytest.mark.django_db(transaction=True)
def test_abandoning_and_a_conflict_at_once_queue_nothing(support_agent: Agent) -> None:
    for _ in range(6):
        plan = moved(moved(pending(support_agent), Verb.APPROVE), Verb.START_ATTEMPT)
        attempt(plan)
        acts: list[Callable[[], Any]] = [
            partial(give_up, plan),
            partial(moved, plan, Verb.CONFLICT),
        ]
        assert not [r for r in at_once(acts) if isinstance(r, Exception)]
        assert fresh(plan).status == Status.CONFLICTED
        assert not Replan.objects.filter(plan=plan, status__in=Replan.WAITING).exists()

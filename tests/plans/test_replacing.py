"""Which plans may be replaced, and by whom: A-22, R-2, and `replan_id` (A-13)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User

from plans import expiry, replanning
from plans.errors import Problem, Superseded
from plans.lifecycle import Verb
from plans.models import Agent, Intent, Operation, Plan, Replan
from plans.status import Status
from plans.submission import submit
from tests.plans.planning_target import PlanningTarget, Reply, Seen, dry_run
from tests.plans.story import at_once, fresh, moved, past, pending, refused, submission, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("refund")]


@pytest.mark.parametrize(
    "status",
    ["expired", "conflicted", "stale", "changes_requested", "rejected", "failed", "abandoned"],
)
def test_a_closed_plan_that_applied_nothing_may_be_replaced(
    status: str, support_agent: Agent, make_plan: Callable[..., Plan]
) -> None:
    old = make_plan(status)
    new = submitted(support_agent, replaces=old.plan_id, summary="again", task_id="task-9")
    new, old = fresh(new), fresh(old)
    assert (new.intent_id, new.revision, new.status) == (old.intent_id, 2, Status.VERIFYING)
    assert (new.replaces_id, old.replaced_by.pk, old.status) == (old.pk, new.pk, status)
    assert (new.intent.latest_revision, new.intent.status) == (2, Intent.Status.OPEN)
    assert (new.intent.summary, new.intent.task_id) == ("again", "task-9")


@pytest.mark.parametrize("status", [Status.PENDING, Status.VERIFYING])
def test_a_plan_that_waits_is_superseded_at_once(
    status: Status, support_agent: Agent, make_plan: Callable[..., Plan]
) -> None:
    old = make_plan(status)
    new = submitted(support_agent, replaces=old.plan_id)
    old = fresh(old)
    assert (old.status, old.token, old.commit_body) == (Status.SUPERSEDED, None, None)
    assert old.replaced_by.pk == new.pk
    assert not Replan.objects.exists()


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("approved", "predecessor-unresolved"),
        ("committing", "predecessor-unresolved"),
        ("unknown", "predecessor-unresolved"),
        ("unresolved", "predecessor-unresolved"),
        ("committed", "predecessor-committed"),
        ("mismatched", "intent-closed"),
    ],
)
def test_what_may_have_been_applied_is_not_replaced(
    status: str, code: str, support_agent: Agent, make_plan: Callable[..., Plan]
) -> None:
    old = make_plan(status)
    refusal = refused(support_agent, submission(replaces=old.plan_id))
    assert (refusal.status, refusal.code) == (409, code)
    assert refusal.members == {"plan_id": old.plan_id, "plan_status": status}


def test_what_was_replaced_names_its_successor(support_agent: Agent) -> None:
    old = pending(support_agent)
    new = submitted(support_agent, replaces=old.plan_id)
    refusal = refused(support_agent, submission(replaces=old.plan_id))
    assert (refusal.status, refusal.code) == (409, "superseded")
    assert refusal.members["replaced_by"] == new.plan_id


def test_another_agents_plan_is_not_there(
    support_agent: Agent, make_plan: Callable[..., Plan], ada: User
) -> None:
    stranger = Agent.objects.create(name="stranger", owner=ada)
    old = make_plan(Status.PENDING)
    assert refused(stranger, submission(replaces=old.plan_id)).code == "unknown-predecessor"


def test_a_plan_cannot_replace_itself(support_agent: Agent) -> None:
    sent = submission(dry_run(plan_id="plan_1"), replaces="plan_1")
    assert refused(support_agent, sent).code == "unknown-predecessor"


def test_an_intent_keeps_its_operation(
    support_agent: Agent, refund: Operation, make_plan: Callable[..., Plan]
) -> None:
    other = Operation(target=refund.target, name="credit", dry_run_path="/c", commit_path="/d")
    other.save()
    old = make_plan(Status.EXPIRED)
    refusal = refused(support_agent, submission(operation="credit", replaces=old.plan_id))
    assert (refusal.code, refusal.errors[0].pointer) == ("invalid-field", "/operation")


def test_replacing_ends_the_work_that_waited_for_it(support_agent: Agent) -> None:
    old = past(pending(support_agent))
    expiry.expire(old.pk)
    new = submitted(support_agent, replaces=old.plan_id)
    replan = Replan.objects.get()
    assert (replan.plan_id, replan.new_plan_id, replan.status) == (old.pk, new.pk, "done")


def test_a_parked_intent_is_open_again_when_its_agent_plans(support_agent: Agent) -> None:
    old = past(pending(support_agent))
    Intent.objects.update(unattended_replans=3)
    expiry.expire(old.pk)
    assert Intent.objects.get().status == Intent.Status.PARKED
    submitted(support_agent, replaces=old.plan_id)
    intent = Intent.objects.get()
    # No person has looked at it meanwhile: the next lapse parks it again.
    assert (intent.status, intent.unattended_replans) == (Intent.Status.OPEN, 4)


# ── `replan_id`: the agent answers a re-plan of its own ──────────────────────────────────────


@pytest.fixture
def asked(support_agent: Agent) -> Replan:
    """A reviewer asked for changes; the agent is to make the next plan."""
    moved(pending(support_agent), Verb.REQUEST_CHANGES, replan_reason="less")
    return Replan.objects.select_related("plan").get()


def test_an_agents_answer_is_the_next_revision(asked: Replan, support_agent: Agent) -> None:
    Agent.objects.update(pending_cap=0)
    new = submitted(support_agent, replan_id=asked.pk)
    asked.refresh_from_db()
    assert (asked.status, asked.new_plan_id) == (Replan.Status.DONE, new.pk)
    assert (new.revision, new.replaces_id) == (2, asked.plan_id)
    assert new.intent_id == asked.intent_id


def test_an_answer_given_twice_finds_its_plan(asked: Replan, support_agent: Agent) -> None:
    sent = submission(replan_id=asked.pk)
    plan, _ = submit(support_agent, sent)
    assert submit(support_agent, sent) == (plan, False)


def test_a_finished_replan_takes_no_second_plan(asked: Replan, support_agent: Agent) -> None:
    submitted(support_agent, replan_id=asked.pk)
    refusal = refused(support_agent, submission(replan_id=asked.pk))
    assert (refusal.status, refusal.code) == (409, "replan-not-held")


def test_a_servers_replan_is_not_the_agents(support_agent: Agent) -> None:
    expiry.expire(past(pending(support_agent)).pk)
    refusal = refused(support_agent, submission(replan_id=Replan.objects.get().pk))
    assert refusal.code == "unknown-replan"


@pytest.mark.parametrize(("own", "code"), [(True, None), (False, "unknown-predecessor")])
def test_replan_and_replaces_must_mean_the_same_plan(
    own: bool, code: str | None, asked: Replan, support_agent: Agent
) -> None:
    other = pending(support_agent)
    assert asked.plan is not None
    named = asked.plan.plan_id if own else other.plan_id
    sent = submission(replan_id=asked.pk, replaces=named)
    if code is None:
        assert submit(support_agent, sent)[1]
    else:
        assert refused(support_agent, sent).code == code


def asked_by_person(plan: Plan) -> Replan:
    """A person wants a fresh plan for one that still waits, from the agent (R-4)."""
    return Replan.objects.create(intent=plan.intent, cause=Replan.Cause.PERSON, mode="agent")


def test_a_fresh_plan_supersedes_the_one_that_waits(support_agent: Agent) -> None:
    old = pending(support_agent)
    new = submitted(support_agent, replan_id=asked_by_person(old).pk)
    assert (fresh(old).status, new.replaces_id) == (Status.SUPERSEDED, old.pk)
    assert Plan.objects.filter(status__in=["pending", "verifying"]).count() == 1


def test_a_person_may_have_a_mismatched_plan_made_anew(
    support_agent: Agent, make_plan: Callable[..., Plan]
) -> None:
    old = make_plan(Status.MISMATCHED)
    new = submitted(support_agent, replan_id=asked_by_person(old).pk)
    assert new.replaces_id == old.pk


def test_no_fresh_plan_comes_beside_one_that_is_approved(support_agent: Agent) -> None:
    old = pending(support_agent)
    replan = asked_by_person(old)
    moved(old, Verb.APPROVE)
    refusal = refused(support_agent, submission(replan_id=replan.pk))
    assert refusal.code == "predecessor-unresolved"


# ── the agent's `replaces` against the server's re-plan ────────────────────────────────


@pytest.mark.django_db(transaction=True)
def test_the_agent_is_first_and_the_servers_plan_is_discarded(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    old = past(pending(support_agent))
    expiry.expire(old.pk)
    made: list[Plan] = []

    def meanwhile(seen: Seen) -> Reply:
        made.append(submitted(support_agent, replaces=old.plan_id))
        return Reply(200, dry_run())

    planning.script["dry_run"] = meanwhile
    assert replanning.run(Replan.objects.get().pk) is None
    assert Plan.objects.count() == 2
    assert Replan.objects.get().new_plan_id == made[0].pk


@pytest.mark.django_db(transaction=True)
def test_the_server_is_first_and_the_agent_is_told(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    old = past(pending(support_agent))
    expiry.expire(old.pk)
    new = replanning.run(Replan.objects.get().pk)
    assert new is not None
    refusal = refused(support_agent, submission(replaces=old.plan_id))
    assert refusal.members["replaced_by"] == Plan.objects.get(pk=new).plan_id


@pytest.mark.django_db(transaction=True)
def test_agent_and_server_at_once_come_to_one_successor(
    support_agent: Agent, planning: PlanningTarget
) -> None:
    for _ in range(6):
        old = past(pending(support_agent))
        expiry.expire(old.pk)
        replan = Replan.objects.get(plan=old)
        acts: list[Callable[[], Any]] = [
            partial(replanning.run, replan.pk),
            partial(submit, support_agent, submission(replaces=old.plan_id)),
        ]
        server, agent = at_once(acts)
        new = Plan.objects.get(replaces=old)
        assert (new.revision, Plan.objects.filter(intent=old.intent).count()) == (2, 2)
        if isinstance(agent, Problem):
            assert (type(agent), server) == (Superseded, new.pk)
        else:
            assert isinstance(agent, tuple)
            assert (server, agent[0].pk) == (None, new.pk)

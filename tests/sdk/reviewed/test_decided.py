"""Through Countersign: a real server, a real target, people at their browsers, one ledger."""

from __future__ import annotations

import pytest

from countersign_agent import OutcomeUnknown, PlanSubmitted, as_json
from countersign_agent.errors import TaskEnded
from tests.journeys.people import Billing, Person
from tests.journeys.product import eventually
from tests.sdk.overhearing import Ear
from tests.sdk.reviewed.program import Reviewed, in_both
from tests.sdk.reviewed.waiting import arrived, proposed, settled, shown, wish


@in_both
def test_a_person_approves_and_it_is_told_once(
    program: Reviewed, billing: Billing, ada: Person, ear: Ear
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        waiting = proposed(task, wish(invoice), reason="Arrived damaged.")
        assert (waiting.status, waiting.next_action) == ("pending", "wait")
        same = task.propose("billing", "refund", wish(invoice))
        assert same.plan.plan_id == waiting.plan.plan_id
        ear.refused(PlanSubmitted, lambda: task.commit(waiting.plan.plan_id))
        assert "Arrived damaged." in ada.sees(shown(waiting))
        ada.approve_now(shown(waiting))
        done = settled(task, waiting.plan.plan_id)
        assert (done.status, done.next_action) == ("committed", "done")
        assert done.result["refunded_cents"] == 48_000
        assert task.propose("billing", "refund", wish(invoice)).result == done.result
        ear.heard(waiting, done, as_json(done), task.core.known, task.plans())
    (effect,) = billing.effects(invoice)
    assert effect["idempotency_key"] == waiting.plan.idempotency_key
    assert ear.commits == []


def test_requested_changes_become_the_next_revision(
    program: Reviewed, billing: Billing, ada: Person
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        first = proposed(task, wish(invoice))
        ada.decide(shown(first), "request_changes", "Half of it, please.")
        told = settled(task, first.plan.plan_id)
        assert (told.status, told.next_action) == ("changes_requested", "replan")
        assert told.reason == "Half of it, please."
        second = arrived(task, task.revise(first.plan.plan_id, wish(invoice, 24_000)))
        assert second.plan.revision == 2
        ada.approve_now(shown(second))
        assert settled(task, second.plan.plan_id).result["amount_cents"] == 24_000
    assert [each["amount_cents"] for each in billing.effects(invoice)] == [24_000]


def test_a_changed_mind_replaces_the_plan_that_waits(
    program: Reviewed, billing: Billing, ada: Person
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        first = proposed(task, wish(invoice))
        second = arrived(task, task.revise(first.plan.plan_id, wish(invoice, 100)))
        assert second.plan.revision == 2
        assert program.client().read_plan("billing", first.plan.plan_id).status == "superseded"
        gone = task.withdraw(second.plan.plan_id)
        assert (gone.status, gone.next_action) == ("abandoned", "stop")
    assert billing.effects(invoice) == []


def test_a_rejection_is_the_answer_to_the_same_wish(
    program: Reviewed, billing: Billing, ada: Person
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        first = proposed(task, wish(invoice))
        ada.decide(shown(first), "reject", "Not ours to pay.")
        told = settled(task, first.plan.plan_id)
        assert (told.status, told.next_action) == ("rejected", "stop")
        assert (told.decision.by, told.reason) == ("ada", "Not ours to pay.")
        assert task.propose("billing", "refund", wish(invoice)).status == "rejected"
        asked_again = task.propose("billing", "refund", wish(invoice), again=True)
        assert asked_again.plan.plan_id != first.plan.plan_id
    assert billing.effects(invoice) == []


@in_both
def test_an_exception_ends_the_task_and_abandons_its_plans(
    program: Reviewed, billing: Billing, ear: Ear
) -> None:
    guard, plans = program.guard(), []

    def break_off() -> None:
        with guard.task(program.task_id) as task:
            plans.append(proposed(task, wish(billing.new_invoice())).plan)
            raise LookupError

    with pytest.raises(LookupError):
        break_off()
    told = program.client().read_plan("billing", plans[0].plan_id)
    assert (told.status, told.next_action) == ("abandoned", "stop")
    task = guard.task(program.task_id)
    late = wish(billing.new_invoice())
    ear.refused(TaskEnded, lambda: task.propose("billing", "refund", late))
    task.end()
    program.ear.refused(
        TaskEnded, lambda: guard.task(program.task_id).propose("billing", "refund", late)
    )


def test_nothing_else_is_proposed_while_the_outcome_is_unknown(
    program: Reviewed, billing: Billing, ada: Person, ear: Ear
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        first = proposed(task, wish(invoice, 1_500))
        billing.arm("apply_then_timeout", seconds=20)
        ada.approve_now(shown(first))
        assert eventually(
            lambda: task.status(first.plan.plan_id).status in ("committing", "unknown")
        )
        ear.refused(OutcomeUnknown, lambda: task.propose("billing", "refund", wish(invoice, 1_400)))
        assert settled(task, first.plan.plan_id).status == "committed"
    assert [each["amount_cents"] for each in billing.effects(invoice)] == [1_500]


def test_the_agents_credential_cannot_walk_around_the_review(
    program: Reviewed, billing: Billing, ear: Ear
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        planned = task.plan("billing", "refund", wish(invoice))
        refused = task.commit(planned.plan.plan_id)
        assert (refused.status, refused.next_action) == ("failed", "stop")
    assert billing.effects(invoice) == []


def test_without_a_way_to_the_target_the_server_makes_the_plan(
    program: Reviewed, billing: Billing, ada: Person, ear: Ear
) -> None:
    invoice = billing.new_invoice()
    with program.guard(targets=False).task(program.task_id) as task:
        for _ in range(10):
            waiting = task.propose("billing", "refund", wish(invoice), reason="Broken.")
            if waiting.plan is not None:
                break
        waiting = arrived(task, waiting)
        ada.approve_now(shown(waiting))
        assert settled(task, waiting.plan.plan_id).status == "committed"
    assert len(billing.effects(invoice)) == 1
    assert ear.tokens == []

"""The world moves while a plan waits for people, and the next revision takes its place."""

from __future__ import annotations

from datetime import timedelta

import pytest

from countersign_agent.errors import NotFound
from tests.journeys.people import Billing, Person
from tests.sdk.overhearing import Ear
from tests.sdk.reviewed.program import Reviewed, in_both
from tests.sdk.reviewed.waiting import arrived, followed, proposed, settled, shown, wish


def test_a_moved_world_comes_back_as_the_next_revision(
    program: Reviewed, billing: Billing, ada: Person
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        first = proposed(task, wish(invoice))
        billing.refund_elsewhere(invoice, 20_000)
        ada.approve_now(shown(first))
        second = followed(task, first)
        assert second.plan.revision == 2
        ada.approve_now(shown(second))
        done = settled(task, first.plan.plan_id)
        assert done.result["amount_cents"] == 28_000
    assert [each["amount_cents"] for each in billing.effects(invoice)] == [28_000]


@pytest.mark.parametrize("left", [20_000, 48_000])
def test_the_agents_own_re_plan_is_made_while_it_waits(
    program: Reviewed, billing: Billing, ada: Person, left: int
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        first = arrived(task, task.propose("desk", "refund", wish(invoice)))
        billing.refund_elsewhere(invoice, left)
        form = ada.decision_form(ada.page(first.plan.plan_id, "desk"))
        assert ada.approve(first.plan.plan_id, "desk", form).status_code == 303
        if left == 48_000:
            assert settled(task, first.plan.plan_id).next_action == "done"
            return
        second = followed(task, first)
        assert second.plan.revision == 2
        form = ada.decision_form(ada.page(second.plan.plan_id, "desk"))
        assert ada.approve(second.plan.plan_id, "desk", form).status_code == 303
        assert settled(task, first.plan.plan_id).result["amount_cents"] == 28_000
    assert [each["amount_cents"] for each in billing.effects(invoice)] == [28_000]


@in_both
def test_a_write_of_the_agent_takes_its_plan_from_the_queue(
    program: Reviewed, billing: Billing, ada: Person, ear: Ear
) -> None:
    invoice = billing.new_invoice()
    guard = program.guard()

    @guard.mutating("invoice/{number}")  # type: ignore[untyped-decorator]  # either kind of guard
    def refund_by_hand(number: str) -> None:
        billing.refund_elsewhere(number, 1_000)

    with guard.task(program.task_id) as task:
        first = proposed(task, wish(invoice))
        form = ada.form(shown(first))
        refund_by_hand(invoice)
        assert ada.decide(shown(first), form=form).status_code in (409, 410)
        second = followed(task, first)
        ada.approve_now(shown(second))
        assert settled(task, second.plan.plan_id).result["amount_cents"] == 47_000
    assert len(billing.effects(invoice)) == 1


@pytest.mark.parametrize("why", ["expired", "written to"])
def test_a_plan_that_must_not_be_used_is_never_handed_over(
    program: Reviewed, billing: Billing, ear: Ear, why: str
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        planned = task.plan("billing", "refund", wish(invoice))
        if why == "expired":
            program.later = timedelta(hours=1)
        else:
            task.wrote([f"invoice/{invoice}"], "a tool")
        handed = arrived(task, task.submit(planned.plan.plan_id, reason="Late."))
        assert handed.plan.plan_id != planned.plan.plan_id
        dead = planned.plan.plan_id
        ear.refused(NotFound, lambda: program.client().read_plan("billing", dead))

"""What a guard never sends, because it is too old, of another state, or not what was planned.

The direct way: the same program plans and commits, and the target's ledger is the judge.
"""

from __future__ import annotations

import hashlib

import pytest

from countersign_agent import (
    FingerprintDisagreement,
    InputsChanged,
    PlanReplaced,
    TokenDisagreement,
    UnknownPlan,
)
from tests.demo.billing_process import Target
from tests.sdk.overhearing import Ear
from tests.sdk.programs import Program
from tests.sdk.refunds import paid, wish


def test_it_never_commits_after_the_expiry(
    program: Program, billing: Target, invoice: str, ear: Ear
) -> None:
    with program.guard().task("t") as task:
        planned = task.plan("billing", "refund", wish(invoice))
        program.time_passes(600)
        dead = task.commit(planned.plan.plan_id)
        assert (dead.status, dead.next_action) == ("expired", "commit")
        assert ear.commits == []
        assert dead.successor.plan_id != planned.plan.plan_id
        assert dead.successor.inputs == planned.plan.inputs
    assert paid(billing, invoice) == []


def test_it_does_not_begin_what_could_arrive_too_late(
    program: Program, billing: Target, invoice: str, ear: Ear
) -> None:
    with program.guard(seconds=30).task("t") as task:
        planned = task.plan("billing", "refund", wish(invoice))
        program.time_passes(575)
        assert task.commit(planned.plan.plan_id).status == "expired"
    assert ear.commits == []
    assert paid(billing, invoice) == []


def test_it_never_commits_after_a_write_of_its_own(
    program: Program, billing: Target, invoice: str, ear: Ear
) -> None:
    guard = program.guard()

    @guard.mutating("invoice/{number}")  # type: ignore[untyped-decorator]  # either kind of guard
    def refund_by_hand(number: str) -> str:
        path = f"/invoices/{number}/external_refund"
        return str(billing.app.post(path, json={"amount_cents": 1}).status_code)

    with guard.task("t") as task:
        planned = task.plan("billing", "refund", wish(invoice))
        assert refund_by_hand(invoice) == "200"
        stale = task.commit(planned.plan.plan_id)
        assert stale.status == "stale"
        assert ear.commits == []
        done = task.commit(stale.successor.plan_id)
        assert done.result["refunded_cents"] == 1_501
    assert paid(billing, invoice) == [1_500]


def test_a_write_elsewhere_and_a_read_leave_the_plan_alone(
    program: Program, billing: Target, invoice: str
) -> None:
    guard = program.guard()

    @guard.mutating(["invoice/1"])  # type: ignore[untyped-decorator]  # either kind of guard
    def elsewhere() -> None: ...

    with guard.task("t") as task:
        planned = task.plan("billing", "refund", wish(invoice))
        elsewhere()
        billing.agent.get(f"/invoices/{invoice}")
        assert task.commit(planned.plan.plan_id).status == "committed"


def test_a_tool_that_fails_has_perhaps_written(
    program: Program, billing: Target, invoice: str, ear: Ear
) -> None:
    guard = program.guard()

    @guard.mutating(["*"])  # type: ignore[untyped-decorator]  # either kind of guard
    def breaks() -> None:
        raise LookupError

    with guard.task("t") as task:
        planned = task.plan("billing", "refund", wish(invoice))
        with pytest.raises(LookupError):
            breaks()
        assert task.commit(planned.plan.plan_id).status == "stale"
    assert ear.commits == []


def test_its_own_commit_is_a_write_for_what_else_it_planned(
    program: Program, billing: Target, invoice: str
) -> None:
    with program.guard().task("t") as task:
        one = task.plan("billing", "refund", wish(invoice, 1_000))
        two = task.plan("billing", "refund", wish(invoice, 2_000))
        assert task.commit(one.plan.plan_id).status == "committed"
        stale = task.commit(two.plan.plan_id)
        assert stale.status == "stale"
    assert paid(billing, invoice) == [1_000]


def test_an_older_plan_and_its_token_are_never_sent(
    program: Program, billing: Target, invoice: str, ear: Ear
) -> None:
    with program.guard().task("t") as task:
        first = task.plan("billing", "refund", wish(invoice))
        program.time_passes(600)
        second = task.commit(first.plan.plan_id).successor
        program.time_passes(-600)
        ear.refused(PlanReplaced, lambda: task.commit(first.plan.plan_id))
        from_the_conversation, current = ear.tokens
        stale = {"plan_token": from_the_conversation}
        ear.refused(TokenDisagreement, lambda: task.commit(second.plan_id, **stale))
        ear.refused(UnknownPlan, lambda: task.commit("plan_of_another_task"))
        assert ear.commits == []
        done = task.commit(second.plan_id, plan_token=current)
        ear.refused(TokenDisagreement, lambda: task.commit(second.plan_id, plan_token=current))
    assert done.status == "committed"
    assert paid(billing, invoice) == [1_500]


def test_a_recomputed_fingerprint_is_refused(
    program: Program, billing: Target, invoice: str, ear: Ear
) -> None:
    with program.guard().task("t") as task:
        planned = task.plan("billing", "refund", wish(invoice))
        own = f"sha256:{hashlib.sha256(planned.plan.inputs.encode()).hexdigest()}"
        for believed in (own, "", planned.plan.input_fingerprint.upper()):
            call = {"input_fingerprint": believed}
            ear.refused(
                FingerprintDisagreement,
                lambda call=call: task.commit(planned.plan.plan_id, **call),  # type: ignore[misc]
            )
        assert ear.commits == []
        believed = planned.plan.input_fingerprint
        assert task.commit(planned.plan.plan_id, input_fingerprint=believed).status == "committed"


def test_inputs_that_changed_beside_the_token_are_refused(
    program: Program, billing: Target, invoice: str, ear: Ear
) -> None:
    with program.guard().task("t") as task:
        planned = task.plan("billing", "refund", wish(invoice))
        more = wish(invoice, 15_000)
        ear.refused(InputsChanged, lambda: task.commit(planned.plan.plan_id, inputs=more))
        assert ear.commits == []
        turned = dict(reversed(wish(invoice).items()))
        assert task.commit(planned.plan.plan_id, inputs=turned).status == "committed"
    assert paid(billing, invoice) == [1_500]

"""Line by line what an agent gets wrong without a guard; the target's ledger is the judge.

The direct way: nobody else decides, the same program plans and commits.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from countersign_agent import JsonFileStore, OutcomeUnknown, TaskOver, as_json
from tests.demo.billing_process import Target
from tests.sdk.overhearing import Ear
from tests.sdk.programs import QUICK, Program
from tests.sdk.refunds import paid, wish


def test_a_plan_is_committed_once_and_told_as_it_is(
    program: Program, billing: Target, invoice: str, ear: Ear
) -> None:
    with program.guard().task("t") as task:
        planned = task.plan("billing", "refund", wish(invoice))
        assert (planned.status, planned.next_action) == ("planned", "commit")
        assert planned.plan.inputs == f'{{"amount_cents":1500,"invoice_id":"{invoice}"}}'
        done = task.commit(planned.plan.plan_id)
        again = task.commit(planned.plan.plan_id)
        same_wish = task.plan("billing", "refund", wish(invoice))
        ear.heard(planned, done, task, task.core, task.core.known, as_json(done))
    assert (done.status, done.next_action) == ("committed", "done")
    assert done.result["refunded_cents"] == 1_500
    assert again.result == same_wish.result == done.result
    assert paid(billing, invoice) == [1_500]
    assert len(ear.commits) == 1


def test_the_very_same_write_once_more_is_asked_for_on_purpose(
    program: Program, billing: Target, invoice: str
) -> None:
    with program.guard().task("t") as task:
        for again in (False, False, True):
            planned = task.plan("billing", "refund", wish(invoice), again=again)
            task.commit(planned.plan.plan_id)
    assert paid(billing, invoice) == [1_500, 1_500]


def test_a_moved_world_is_planned_again_and_named(
    program: Program, billing: Target, invoice: str
) -> None:
    with program.guard().task("t") as task:
        planned = task.plan("billing", "refund", wish(invoice, 48_000))
        billing.app.post(f"/invoices/{invoice}/external_refund", json={"amount_cents": 20_000})
        refused = task.commit(planned.plan.plan_id)
        assert (refused.status, refused.next_action) == ("conflicted", "commit")
        (change,) = refused.changed
        assert (change.path, change.planned, change.current) == ("refunded_cents", 0, 20_000)
        assert task.commit(refused.successor.plan_id).result["amount_cents"] == 28_000
    assert paid(billing, invoice) == [28_000]


def test_a_retry_has_the_same_key_and_the_same_bytes(
    program: Program, billing: Target, invoice: str, ear: Ear
) -> None:
    billing.arm("error_500", times=2)
    with program.guard().task("t") as task:
        planned = task.plan("billing", "refund", wish(invoice))
        assert task.commit(planned.plan.plan_id).status == "committed"
    assert len(ear.commits) == 3
    assert ear.keys == {planned.plan.idempotency_key}
    assert len({call.body.reveal() for call in ear.commits}) == 1
    assert paid(billing, invoice) == [1_500]


@pytest.mark.parametrize(
    "fault", ["apply_then_timeout", "apply_then_reset", "apply_then_error_500"]
)
def test_silence_is_not_a_failure(
    program: Program, billing: Target, invoice: str, ear: Ear, fault: str
) -> None:
    with program.guard(seconds=0.7).task("t") as task:
        planned = task.plan("billing", "refund", wish(invoice))
        billing.arm(fault, seconds=3)
        done = task.commit(planned.plan.plan_id)
    assert (done.status, done.replayed) == ("committed", True)
    assert len(ear.keys) == 1
    assert paid(billing, invoice) == [1_500]


def test_nothing_else_may_follow_while_the_outcome_is_unknown(
    program: Program, billing: Target, invoice: str, ear: Ear
) -> None:
    guard = program.guard(seconds=0.4)
    guard.around.patience = replace(QUICK, commit=0.1)
    with guard.task("t") as task:
        first = task.plan("billing", "refund", wish(invoice))
        other = task.plan("billing", "refund", wish(invoice, 1_400))
        elsewhere = task.plan("billing", "refund", wish(billing.new_invoice(), 1))
        billing.arm("apply_then_timeout", seconds=3)
        unknown = task.commit(first.plan.plan_id)
        assert (unknown.status, unknown.next_action) == ("unknown", "retry_same")
        for call in (
            lambda: task.plan("billing", "refund", wish(invoice)),
            lambda: task.plan("billing", "refund", wish(invoice, 1_499)),
            lambda: task.commit(other.plan.plan_id),
            lambda: task.withdraw(first.plan.plan_id),
        ):
            assert ear.refused(OutcomeUnknown, call).next_action == "retry_same"
        # The very same wish is refused before a dry run of it.
        assert len(ear.tokens) == 4
        assert len(ear.commits) == 1
        assert task.commit(elsewhere.plan.plan_id).status == "committed"
        guard.around.patience = QUICK
        assert task.commit(first.plan.plan_id).status == "committed"
    assert paid(billing, invoice) == [1_500]


def test_no_token_outlives_its_task(
    program: Program, billing: Target, invoice: str, ear: Ear, tmp_path: Path
) -> None:
    store = JsonFileStore(tmp_path / "state.json")
    guard = program.guard(store)

    def break_off() -> None:
        with guard.task("t") as task:
            task.plan("billing", "refund", wish(invoice))
            assert ear.tokens[0].is_in(store.path.read_text())
            assert store.path.stat().st_mode & 0o777 == 0o600
            raise LookupError

    with pytest.raises(LookupError):
        break_off()
    (token,) = ear.tokens
    assert not any(token.is_in(file.read_text()) for file in tmp_path.iterdir())
    assert store.tasks() == []
    with guard.task("t") as anew:
        assert anew.plans() == ()
    assert ear.commits == []


def test_an_abandoned_plan_is_over(
    program: Program, billing: Target, invoice: str, ear: Ear
) -> None:
    with program.guard().task("t") as task:
        planned = task.plan("billing", "refund", wish(invoice))
        gone = task.withdraw(planned.plan.plan_id)
        assert (gone.status, gone.next_action) == ("abandoned", "stop")
        assert task.commit(planned.plan.plan_id).status == "abandoned"
        ended = task.end("the customer changed her mind")
        assert ended.recorded
    assert ear.commits == []


def test_a_changed_mind_drops_the_plan_before(
    program: Program, billing: Target, invoice: str, ear: Ear
) -> None:
    with program.guard().task("t") as task:
        first = task.plan("billing", "refund", wish(invoice))
        second = task.revise(first.plan.plan_id, wish(invoice, 100))
        assert task.commit(first.plan.plan_id).status == "abandoned"
        assert task.commit(second.plan.plan_id).status == "committed"
    assert paid(billing, invoice) == [100]


def test_the_end_tells_what_is_not_known(
    program: Program, billing: Target, invoice: str, ear: Ear, tmp_path: Path
) -> None:
    guard = program.guard(JsonFileStore(tmp_path / "state.json"), seconds=0.4)
    guard.around.patience = replace(QUICK, commit=0.1, ending=0.1)
    billing.arm("apply_slowly", seconds=4)

    def leave() -> None:
        with guard.task("t") as task:
            task.commit(task.plan("billing", "refund", wish(invoice)).plan.plan_id)

    doubt = ear.refused(OutcomeUnknown, leave)
    assert doubt.next_action == "retry_same"
    (token,) = ear.tokens
    kept = json.loads((tmp_path / "state.json").read_text())
    assert kept["t"]["task"]["ended"]
    assert not token.is_in(json.dumps(kept))
    left = guard.task("t")
    ear.refused(TaskOver, lambda: left.plan("billing", "refund", wish(invoice)))
    guard.around.patience = replace(QUICK, ending=20)
    assert left.end().unresolved == ()
    assert guard.around.store.tasks() == []
    assert paid(billing, invoice) == [1_500]


def test_a_call_that_is_cancelled_is_in_doubt_and_found_out_later(
    billing: Target, invoice: str, ear: Ear
) -> None:
    with asyncio.Runner() as runner:
        program = Program("event loop", ear, billing.url, runner)
        task = program.guard(seconds=10).task("t").inner

        async def give_up() -> str:
            planned = await task.plan("billing", "refund", wish(invoice))
            billing.arm("apply_then_timeout", seconds=3)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(task.commit(planned.plan.plan_id), 0.5)
            with pytest.raises(OutcomeUnknown):
                await task.plan("billing", "refund", wish(invoice, 1))
            return str((await task.commit(planned.plan.plan_id)).status)

        assert runner.run(give_up()) == "committed"
        runner.run(task.end())
        for close in program.closing:
            close()
    assert paid(billing, invoice) == [1_500]
    assert len(ear.keys) == 1


def test_many_at_once_commit_once(
    program: Program, billing: Target, invoice: str, ear: Ear
) -> None:
    if program.kind == "threads":
        with program.guard().task("t") as task, ThreadPoolExecutor(8) as pool:
            plan_id = task.plan("billing", "refund", wish(invoice)).plan.plan_id
            told = [each.status for each in pool.map(task.commit, [plan_id] * 8)]
    else:
        task = program.guard().task("t").inner

        async def all_at_once() -> list[str]:
            planned = await task.plan("billing", "refund", wish(invoice))
            calls = [task.commit(planned.plan.plan_id) for _ in range(8)]
            return [each.status for each in await asyncio.gather(*calls)]

        told = program.runner.run(all_at_once())
    assert told == ["committed"] * 8
    assert len(ear.commits) == 1
    assert paid(billing, invoice) == [1_500]

"""The process is killed between the send and the answer; another one goes on from its store."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from countersign_agent import OutcomeUnknown, StateHeld
from tests.demo.billing_process import ROOT, Target
from tests.sdk.overhearing import Ear
from tests.sdk.programs import STORES, Program
from tests.sdk.refunds import wish

HERE = Path(__file__).parent
PATHS = (ROOT, ROOT / "sdk" / "src")


def paid(billing: Target, invoice: str) -> list[tuple[int, str]]:
    """What was really paid back, and under which key, by the ledger."""
    items = billing.app.get("/_ledger").json()["items"]
    return [
        (each["amount_cents"], each["idempotency_key"])
        for each in items
        if each["invoice_id"] == invoice
    ]


def begun(folder: Path) -> bool:
    """Whether an attempt is on the disk."""
    return any(b'"begun"' in file.read_bytes() for file in folder.iterdir())


def killed(billing: Target, kind: str, folder: Path, invoice: str, fault: str) -> str:
    """Run the program until its commit is on the way, and kill it; its plan ID."""
    billing.arm(fault, seconds=2)
    command = [sys.executable, str(HERE / "crashing.py"), billing.url, kind, str(folder), invoice]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, PATHS))}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        plan_id = child.stdout.readline().strip()
        assert plan_id, "the program did not come to its commit"
        deadline = time.monotonic() + 20
        applied = fault == "apply_then_timeout"
        while not (begun(folder) and (paid(billing, invoice) or not applied)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        child.kill()
        assert child.stdout.read() == ""
    return plan_id


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("json", "apply_then_timeout"),
        ("sqlite", "timeout_before_apply"),
        ("sqlite", "apply_slowly"),
    ],
)
def test_the_next_process_finds_out_and_applies_nothing_twice(
    program: Program, billing: Target, ear: Ear, tmp_path: Path, kind: str, fault: str
) -> None:
    invoice = billing.new_invoice(48_000)
    plan_id = killed(billing, kind, tmp_path, invoice, fault)
    guard = program.guard(STORES[kind](tmp_path))
    with guard.task("t") as task:
        (left,) = task.plans()
        assert (left.plan_id, left.status) == (plan_id, "committing")
        ear.refused(OutcomeUnknown, lambda: task.plan("billing", "refund", wish(invoice)))
        ear.refused(OutcomeUnknown, lambda: task.plan("billing", "refund", wish(invoice, 1_400)))
        assert ear.commits == []
        done = task.commit(plan_id)
        assert done.status == "committed"
        assert done.result["refunded_cents"] == 1_500
    assert paid(billing, invoice) == [(1_500, left.idempotency_key)]
    assert ear.keys <= {left.idempotency_key}


@pytest.mark.parametrize("kind", sorted(STORES))
def test_a_task_is_in_one_process_at_a_time(
    program: Program, billing: Target, ear: Ear, tmp_path: Path, kind: str
) -> None:
    invoice = billing.new_invoice()
    one, other = (program.guard(STORES[kind](tmp_path)) for _ in range(2))
    first, second = one.task("t"), other.task("t")
    planned = first.plan("billing", "refund", wish(invoice))
    ear.refused(StateHeld, lambda: second.plan("billing", "refund", wish(invoice)))
    ear.refused(StateHeld, lambda: one.task("t").plans())
    first.suspend()
    assert second.commit(planned.plan.plan_id).status == "committed"
    second.end()
    assert paid(billing, invoice) == [(1_500, planned.plan.idempotency_key)]

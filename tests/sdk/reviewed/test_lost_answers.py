"""A plan is handed over once, though answers are lost and the program is killed meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from countersign_agent import JsonFileStore, Unanswered
from tests.journeys.people import Billing
from tests.journeys.product import ROOT, Product, eventually
from tests.sdk.overhearing import Ear
from tests.sdk.reviewed.losing import Losing
from tests.sdk.reviewed.program import Reviewed, in_both
from tests.sdk.reviewed.waiting import arrived, proposed, wish

HERE = Path(__file__).parent


def test_the_token_is_dropped_when_the_server_has_it(
    program: Reviewed, billing: Billing, ear: Ear, tmp_path: Path
) -> None:
    store = JsonFileStore(tmp_path / "state.json")
    with program.guard(store).task(program.task_id) as task:
        proposed(task, wish(billing.new_invoice()))
        (token,) = ear.tokens
        assert not token.is_in(store.path.read_text())


@pytest.fixture
def wire(product: Product) -> Iterator[Losing]:
    with Losing(product.port) as wire:
        threading.Thread(target=wire.serve_forever, args=[0.1], daemon=True).start()
        yield wire
        wire.closing.set()
        wire.shutdown()


def plans_of(program: Reviewed, task_id: str) -> list[str]:
    return [each.plan_id for each in program.client().list_plans(task_id=task_id).items]


@in_both
def test_a_submission_whose_answer_is_lost_is_made_once(
    program: Reviewed, billing: Billing, wire: Losing
) -> None:
    with program.guard(base_url=wire.url).task(program.task_id) as task:
        handed = task.propose("billing", "refund", wish(billing.new_invoice()))
        assert [each.path for each in wire.sent].count("/api/v1/plans") == 2
        assert plans_of(program, program.task_id) == [handed.plan.plan_id]


def test_a_submission_that_stays_unanswered_is_found_again(
    program: Reviewed, billing: Billing, wire: Losing, ear: Ear
) -> None:
    wire.times = 1_000
    with program.guard(base_url=wire.url, seconds=1.5).task(program.task_id) as task:
        inputs = wish(billing.new_invoice())
        ear.refused(Unanswered, lambda: task.propose("billing", "refund", inputs))
        wire.times = 0
        handed = task.propose("billing", "refund", inputs)
        assert plans_of(program, program.task_id) == [handed.plan.plan_id]


def test_an_intent_whose_answer_is_lost_is_opened_once(
    program: Reviewed, billing: Billing, wire: Losing, ear: Ear
) -> None:
    wire.loses = ("POST", "/api/v1/intents")
    with program.guard(targets=False, base_url=wire.url).task(program.task_id) as task:
        inputs = wish(billing.new_invoice())
        ear.refused(Unanswered, lambda: task.propose("billing", "refund", inputs))
        found = arrived(task, task.propose("billing", "refund", inputs))
        assert plans_of(program, program.task_id) == [found.plan.plan_id]


def test_a_program_that_is_killed_while_it_hands_over_does_not_ask_twice(
    program: Reviewed, billing: Billing, wire: Losing, tmp_path: Path
) -> None:
    wire.holds = 60.0
    inputs = wish(billing.new_invoice())
    killed_while_proposing(program, wire, tmp_path, inputs)
    with program.guard(JsonFileStore(tmp_path / "state.json")).task(program.task_id) as task:
        (left,) = task.plans()
        assert left.status == "submitting"
        handed = task.propose("billing", "refund", inputs)
        assert handed.plan.plan_id == left.plan_id
        assert plans_of(program, program.task_id) == [left.plan_id]


def killed_while_proposing(
    program: Reviewed, wire: Losing, folder: Path, inputs: dict[str, Any]
) -> None:
    raw = program.product.credentials
    told = [wire.url, program.key, raw.billing_url, program.agent_token, str(folder)]
    told += [program.task_id, json.dumps(inputs)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "sdk" / "src")}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    with subprocess.Popen(
        [sys.executable, str(HERE / "proposing.py")],
        env=environment | {"TOLD": json.dumps(told)},
    ) as child:
        assert eventually(lambda: any(each.path == "/api/v1/plans" for each in wire.sent))
        child.kill()

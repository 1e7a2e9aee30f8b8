"""The plain client against the running product, and the page of the package."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from countersign_agent import Refused
from countersign_agent.errors import NotFound, RequestFault, Unauthenticated
from tests.journeys.people import Billing, Person
from tests.journeys.product import ROOT, Product, eventually
from tests.sdk.overhearing import Ear
from tests.sdk.reviewed.program import Reviewed, in_both
from tests.sdk.reviewed.waiting import proposed, settled, shown, wish


def test_the_events_are_in_order_and_none_is_told_twice(
    program: Reviewed, billing: Billing, ada: Person
) -> None:
    client, cursor, told = program.client(), None, []
    while (page := client.read_events(cursor, limit=200)).items:
        cursor = page.next
    with program.guard().task(program.task_id) as task:
        waiting = proposed(task, wish(billing.new_invoice()))
        ada.approve_now(shown(waiting))
        settled(task, waiting.plan.plan_id)
    for _ in range(20):
        page = client.read_events(cursor, wait=5)
        told += [each for each in page.items if each.task_id == program.task_id]
        cursor = page.next
        if any(each.type == "task.ended" for each in told):
            break
    states = [each.to for each in told if each.to and each.plan_id == waiting.plan.plan_id]
    assert states == ["pending", "approved", "committing", "committed"]
    assert len({each.id for each in told}) == len(told)


@in_both
def test_lists_evidence_and_claims(program: Reviewed, billing: Billing) -> None:
    client = program.client()
    with program.guard().task(program.task_id) as task:
        plan = proposed(task, wish(billing.new_invoice())).plan
        client.add_evidence("billing", plan.plan_id, "Photo", text="A crack.")
        (listed,) = client.list_plans(task_id=program.task_id).items
        assert listed.plan_id == plan.plan_id
        assert client.claim_replan() is None
        told = client.read_plan("billing", plan.plan_id)
        assert client.wait_for_plan(told, 1) == told
        intent = client.read_intent(told.intent_id)
        assert intent.asked.inputs == plan.inputs
        assert client.abandon_plan("billing", plan.plan_id, "other").outcome == "abandoned"
        assert client.end_task(program.task_id, "done").abandoned == ()


@in_both
def test_refusals_are_told_apart(program: Reviewed, ear: Ear) -> None:
    client = program.client()
    ear.refused(NotFound, lambda: client.read_plan("billing", "plan_nobody_has"))
    fault = ear.refused(RequestFault, lambda: client.report_writes("t", [], "tool"))
    assert isinstance(fault, Refused)
    assert fault.problem.errors[0].pointer == "/objects"
    assert fault.next_action == "fix_request"
    program.key = "cs_wrong_key"
    ear.refused(Unauthenticated, lambda: program.client().list_plans())


def test_no_token_is_in_any_log(product: Product, ear: Ear, billing: Billing) -> None:
    with asyncio.Runner() as runner:
        program = Reviewed("threads", ear, product, runner)
        with program.guard().task(program.task_id) as task:
            proposed(task, wish(billing.new_invoice()))
            ear.heard(task.end("enough"))
        for close in program.closing:
            close()
    for file in (product.home / "logs").iterdir():
        ear.heard(file.read_text())


def test_the_page_tells_the_news(
    program: Reviewed, billing: Billing, ada: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    with program.guard().task(program.task_id) as task:
        waiting = proposed(task, wish(billing.new_invoice()))
        ada.approve_now(shown(waiting))
        settled(task, waiting.plan.plan_id)
    page = (ROOT / "sdk" / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (source,) = [block for block in blocks if "tell_news" in block]
    scope: dict[str, Any] = {}
    exec(source, scope)
    cursor, before = scope["tell_news"](program.client(), None), ""
    while cursor != before:
        before, cursor = cursor, scope["tell_news"](program.client(), cursor)
        if "plan.committed" in capsys.readouterr().out:
            return
    raise AssertionError("nothing was told")


def test_the_quick_start_is_true(
    product: Product, billing: Billing, ada: Person, tmp_path: Path
) -> None:
    page = (ROOT / "sdk" / "README.md").read_text()
    first = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0]
    (tmp_path / "first.py").write_text(first)
    (tmp_path / ".demo").symlink_to(product.home)
    assert "PYTHONPATH=sdk/src .venv/bin/python first.py" in page
    environment = os.environ | {"PYTHONPATH": str(ROOT / "sdk" / "src")}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    with subprocess.Popen(
        [sys.executable, "first.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        plan_id = program.stdout.readline().rstrip("/\n").rpartition("/")[2]
        plan = {"plan_id": plan_id}
        assert eventually(lambda: "Approve" in ada.sees(plan))
        ada.approve_now(plan)
        assert program.stdout.read().startswith("committed ")
    assert [each["amount_cents"] for each in billing.effects("4471")] == [1_500]

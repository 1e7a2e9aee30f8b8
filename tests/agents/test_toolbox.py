"""A model's calls in one task, in threads and on the event loop, against the whole product."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from countersign_agent import AsyncClient, AsyncGuard, Client, Guard, JsonFileStore
from countersign_agent.tools import AsyncToolbox, Toolbox
from demo.credentials import AGENT
from tests.journeys.people import Billing, Person
from tests.journeys.product import PATIENCE, Product
from tests.journeys.wire import Wire

_numbers = itertools.count(1)


class Model:
    """What a model does: calls by name, with arguments, and reads JSON."""

    def __init__(self, call: Callable[[str, Any], Any]) -> None:
        self._call = call

    def call(self, name: str, arguments: Any = None, **members: Any) -> dict[str, Any]:
        answer = self._call(name, members if arguments is None else arguments)
        return cast("dict[str, Any]", json.loads(json.dumps(answer)))

    def propose(self, invoice: str, cents: int = 48_000, **more: Any) -> dict[str, Any]:
        inputs = {"invoice_id": invoice, "amount_cents": cents}
        words = {"target": "billing", "operation": "refund", "reason": "It arrived broken."}
        return self.call("propose_write", {**words, "inputs": inputs, **more})

    def until(self, plan_id: str, *statuses: str) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while (answer := self.call("wait_for_decision", plan_id=plan_id, seconds=2)).get(
            "status"
        ) not in statuses:
            assert time.monotonic() < deadline, answer
        return answer

    def pending(self, invoice: str) -> str:
        plan_id = self.propose(invoice)["plan"]["plan_id"]
        assert self.until(plan_id, "pending")["next_action"] == "wait"
        return str(plan_id)


@pytest.fixture(params=["threads", "event loop"])
def model(
    request: pytest.FixtureRequest, tmp_path: Path, product: Product, wire: Wire
) -> Iterator[Model]:
    key = product.credentials.raw["agents"][AGENT]["api_key"]
    store, task_id = JsonFileStore(tmp_path / "state.json"), f"model-{next(_numbers)}"
    if request.param == "threads":
        client = Client(product.credentials.base_url, key)
        box = Toolbox(Guard(client, store=store).task(task_id))
        yield Model(box.call)
        client.close()
        return
    with asyncio.Runner() as runner:
        inner = AsyncClient(product.credentials.base_url, key)
        looped = AsyncToolbox(AsyncGuard(inner, store=store).task(task_id))
        yield Model(lambda name, arguments: runner.run(_awaited(looped.call(name, arguments))))
        runner.run(inner.close())


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer


def test_a_person_rejects_and_the_model_hears_why(
    model: Model, billing: Billing, ada: Person
) -> None:
    invoice = billing.new_invoice()
    plan_id = model.pending(invoice)
    ada.decide({"plan_id": plan_id}, "reject", "It was replaced already.")
    told = model.until(plan_id, "rejected")
    assert (told["next_action"], told["decision"]["note"]) == ("stop", "It was replaced already.")
    again = model.propose(invoice)
    assert (again["status"], again["plan"]["plan_id"]) == ("rejected", plan_id)
    assert billing.effects(invoice) == []


def test_arguments_may_be_the_text_that_the_model_wrote(model: Model, billing: Billing) -> None:
    words = {"target": "billing", "operation": "refund", "reason": "Broken.", "replaces": None}
    inputs = {"invoice_id": billing.new_invoice(), "amount_cents": 1500}
    proposed = model.call("propose_write", json.dumps({**words, "inputs": inputs}))
    assert json.loads(proposed["plan"]["inputs"]) == inputs
    seen = model.call("plan_status", plan_id=proposed["plan"]["plan_id"])
    assert seen["next_action"] == "wait"


def test_a_write_elsewhere_makes_the_plan_stale_and_a_fresh_one_follows(
    model: Model, billing: Billing
) -> None:
    invoice = billing.new_invoice()
    plan_id = model.pending(invoice)
    billing.refund_elsewhere(invoice, 20_000)
    told = model.call("report_write", objects=[f"invoice/{invoice}"], tool="refund_by_hand")
    assert (told["next_action"], told["planned_again"]) == ("replanning", [plan_id])
    fresh = model.until(plan_id, "pending")
    assert (fresh["plan"]["revision"], fresh["plan"]["plan_id"] != plan_id) == (2, True)
    unrelated = model.call("report_write", objects=["invoice/1"], tool="another")
    assert (unrelated["next_action"], unrelated["planned_again"]) == ("done", [])


def test_what_is_true_already_is_told_as_done(model: Model, billing: Billing, ada: Person) -> None:
    invoice = billing.new_invoice()
    plan_id = model.pending(invoice)
    ada.approve_now({"plan_id": plan_id})
    assert model.until(plan_id, "committed")["next_action"] == "done"
    again = model.propose(invoice)
    assert (again["next_action"], again["plan"]["plan_id"]) == ("done", plan_id)
    assert len(billing.effects(invoice)) == 1


def test_the_end_of_the_task_abandons_what_nobody_decided(model: Model, billing: Billing) -> None:
    plan_id = model.pending(billing.new_invoice())
    ended = model.call("end_task", outcome="the customer withdrew")
    assert (ended["abandoned"], ended["unresolved"]) == ([plan_id], [])
    late = model.propose(billing.new_invoice())
    assert (late["next_action"], late["error"]["kind"]) == ("stop", "TaskEnded")


def test_inputs_that_the_target_would_refuse_are_corrected_by_the_model(
    model: Model, billing: Billing
) -> None:
    refused = model.propose(billing.new_invoice(), cents=-1)
    assert (refused["next_action"], refused["error"]["kind"]) == ("fix_request", "RequestFault")
    assert "amount_cents" in refused["error"]["detail"]


def test_a_plan_of_another_operation_cannot_be_replaced(model: Model, billing: Billing) -> None:
    invoice = billing.new_invoice()
    plan_id = model.pending(invoice)
    other = model.propose(invoice, 1, replaces=plan_id, operation="credit")
    assert (other["next_action"], other["error"]["kind"]) == ("fix_request", "BadArguments")
    smaller = model.propose(invoice, 24_000, replaces=plan_id)
    assert smaller["plan"]["plan_id"] != plan_id
    old = model.call("plan_status", plan_id=plan_id)
    assert old["plan"]["inputs"] != smaller["plan"]["inputs"]

"""The MCP server, asked by the official client over both transports, with a person in between."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from countersign_agent.mcp import desk
from countersign_agent.tools.definitions import LONGEST_WAIT
from tests.agents.overheard import tapped
from tests.agents.servers import Surroundings, http_server, over_http, over_stdio
from tests.journeys.people import Billing, Person
from tests.journeys.product import PATIENCE, Product
from tests.journeys.wire import Wire

NAMES = [
    *("propose_write", "plan_status", "wait_for_decision"),
    *("report_write", "withdraw", "end_task"),
]


class Asked:
    """Every way in which a server could ask a client's person for something."""

    def __init__(self) -> None:
        self.times = 0

    async def __call__(self, *_: Any) -> Any:
        self.times += 1
        raise AssertionError("the server asked the client's person")


async def called(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """A tool's answer, which is the same as text and as structure."""
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    answer = json.loads(content.text)  # type: ignore[union-attr]
    assert result.structured_content == answer
    assert result.is_error == ("error" in answer)
    return dict(answer)


def wish(invoice: str, cents: int = 48_000, **more: Any) -> dict[str, Any]:
    inputs = {"invoice_id": invoice, "amount_cents": cents}
    words = {"target": "billing", "operation": "refund", "reason": "It arrived broken."}
    return {**words, "inputs": inputs, **more}


async def until(client: Client, plan_id: str, *statuses: str) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE
    while (answer := await called(client, "wait_for_decision", plan_id=plan_id, seconds=2))[
        "status"
    ] not in statuses:
        assert time.monotonic() < deadline, answer
    return answer


@pytest.fixture(params=["stdio", "http"])
def connect(
    request: pytest.FixtureRequest, tmp_path: Path, product: Product, wire: Wire
) -> Iterator[Any]:
    """`connect()`: a client of a fresh connection; the server of stdio is a new process each time.

    The stdio server makes its dry runs itself, the other lets Countersign make them. At the end no
    token that was ever seen was in any message, in either direction.
    """
    dry_runs = tmp_path / "dry-runs"
    with tapped(product.billing_port, dry_runs) as tap:
        if request.param == "stdio":
            url = f"http://127.0.0.1:{tap.port}"
            around = Surroundings(tmp_path, product, dry_runs_at=url)
            yield lambda **options: over_stdio(around, **options)
        else:
            around = Surroundings(tmp_path, product)
            with http_server(around) as port:
                yield lambda **options: over_http(port, **options)
    said = around.everything()
    assert "propose_write" in said
    assert "what_next" in said
    tokens = {each.members["plan_token"] for each in wire.sent if each.is_commit}
    if dry_runs.exists():
        told = set(re.findall(r'"plan_token": ?"([^"]+)"', dry_runs.read_text()))
        assert told
        tokens |= told
    assert not {token for token in tokens if token in said}, "a plan token was told"
    assert not [name for name in ("plan_token", "input_fingerprint") if name in said]
    assert product.credentials.raw["agents"]["support-agent"]["api_key"] not in said
    assert "Traceback" not in said


def test_a_person_decides_between_two_connections(
    connect: Any, billing: Billing, ada: Person, wire: Wire
) -> None:
    invoice, asked = billing.new_invoice(), Asked()
    options = {"elicitation_callback": asked, "sampling_callback": asked}

    async def before() -> str:
        async with connect(**options) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
            first = await called(client, "propose_write", **wish(invoice))
            assert first["next_action"] == "wait"
            again = await called(client, "propose_write", **wish(invoice))
            assert again["plan"]["plan_id"] == first["plan"]["plan_id"]
            waiting = await until(client, first["plan"]["plan_id"], "pending")
            assert waiting["next_action"] == "wait"
            assert billing.effects(invoice) == []
            return str(first["plan"]["plan_id"])

    async def after() -> None:
        async with connect(**options) as client:
            done = await until(client, plan_id, "committed")
            assert (done["next_action"], done["decision"]["by"]) == ("done", "ada")
            assert done["result"]["refunded_cents"] == 48_000
            ended = await called(client, "end_task", outcome="paid back")
            assert (ended["next_action"], ended["abandoned"]) == ("done", [])
            lost = await called(client, "plan_status", plan_id=plan_id)
            assert lost["error"]["kind"] == "UnknownPlan"

    plan_id = asyncio.run(before())
    ada.approve_now({"plan_id": plan_id})
    asyncio.run(after())
    (effect,) = billing.effects(invoice)
    assert effect["amount_cents"] == 48_000
    assert wire.commits(effect["idempotency_key"]), "its token was overheard"
    assert asked.times == 0


def test_changes_are_requested_and_proposed(connect: Any, billing: Billing, ada: Person) -> None:
    invoice = billing.new_invoice()

    async def story() -> None:
        async with connect() as client:
            first = (await called(client, "propose_write", **wish(invoice)))["plan"]["plan_id"]
            await until(client, first, "pending")
            await asyncio.to_thread(
                ada.decide, {"plan_id": first}, "request_changes", "Only half of it."
            )
            told = await until(client, first, "changes_requested")
            assert told["decision"]["note"] == "Only half of it."
            assert "replaces" in told["what_next"]
            half = wish(invoice, 24_000, replaces=first)
            second = (await called(client, "propose_write", **half))["plan"]["plan_id"]
            await until(client, second, "pending")
            gone = await called(client, "withdraw", plan_id=second, note="The customer kept it.")
            assert (gone["status"], gone["next_action"]) == ("abandoned", "stop")

    asyncio.run(story())
    assert billing.effects(invoice) == []


def test_a_token_that_a_model_found_is_not_taken(connect: Any, billing: Billing) -> None:
    invoice = billing.new_invoice()

    async def story() -> None:
        async with connect() as client:
            finds: list[dict[str, Any]] = [
                {"token": "ptok_of_an_older_plan"},
                {"approved_by": "ada"},
            ]
            for found in finds:
                refused = await called(client, "propose_write", **wish(invoice, **found))
                assert refused["next_action"] == "fix_request"
                assert "ptok" not in json.dumps(refused)
            unknown = await called(client, "approve", plan_id="plan_1")
            assert unknown["error"]["kind"] == "BadArguments"

    asyncio.run(story())


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_clients_of_older_and_newer_protocols_are_served(connect: Any, mode: str) -> None:
    async def story() -> None:
        async with connect(mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
            assert "Nobody can approve in this conversation" in client.instructions
            lost = await called(client, "plan_status", plan_id="plan_unknown")
            assert lost["what_next"]
            await called(client, "propose_write")

    asyncio.run(story())


# ── Waiting ─────────────────────────────────────────────────────────────────────────────────
def test_a_wait_ends_within_25_seconds_and_says_to_ask_again(
    tmp_path: Path, product: Product, wire: Wire, billing: Billing
) -> None:
    around = Surroundings(tmp_path, product)

    async def story() -> None:
        async with over_stdio(around) as client:
            proposed = await called(client, "propose_write", **wish(billing.new_invoice()))
            plan_id = proposed["plan"]["plan_id"]
            await until(client, plan_id, "pending")
            began = time.monotonic()
            answer = await called(client, "wait_for_decision", plan_id=plan_id)
            assert LONGEST_WAIT - 1 < time.monotonic() - began < 25
            assert answer["next_action"] == "wait"
            (wait,) = (t for t in (await client.list_tools()).tools if t.name == NAMES[2])
            assert "call it again" in (wait.description or "")
            await called(client, "end_task")

    asyncio.run(story())


@pytest.mark.parametrize("name", ["wait_for_decision", "propose_write"])
def test_a_call_is_cut_off_where_nobody_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        async def call(self, *_: object) -> None:
            await asyncio.sleep(60)

    assert LONGEST_WAIT < desk.WAIT_SECONDS < 25 < desk.MOST_SECONDS < 60
    monkeypatch.setattr(desk, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(desk, "MOST_SECONDS", 0.05)
    answer = asyncio.run(desk._in_time(Silent(), name, {}))  # type: ignore[arg-type]
    assert answer["next_action"] == "retry_same"


# ── Tasks ───────────────────────────────────────────────────────────────────────────────────
def test_a_client_may_name_its_task(
    tmp_path: Path, product: Product, wire: Wire, billing: Billing
) -> None:
    around = Surroundings(tmp_path, product)

    async def story(port: int) -> None:
        first: dict[str, Any] = {}
        for task, kind in (("case-1", ""), ("case-2", "UnknownPlan"), ("no task", "BadArguments")):
            async with over_http(port, task=task) as client:
                if not first:
                    first.update(await called(client, "propose_write", **wish(invoice)))
                seen = await called(client, "plan_status", plan_id=first["plan"]["plan_id"])
                assert seen.get("error", {}).get("kind", "") == kind

    invoice = billing.new_invoice()
    with http_server(around) as port:
        asyncio.run(story(port))


@asynccontextmanager
async def two(around: Surroundings) -> AsyncIterator[tuple[Client, Client]]:
    async with over_stdio(around) as one, over_stdio(around) as other:
        yield one, other


def test_two_servers_of_one_store_work_on_tasks_of_their_own(
    tmp_path: Path, product: Product, wire: Wire, billing: Billing
) -> None:
    around = Surroundings(tmp_path, product)

    async def story() -> None:
        async with two(around) as (one, other):
            first = await called(one, "propose_write", **wish(billing.new_invoice()))
            second = await called(other, "propose_write", **wish(billing.new_invoice()))
            for client, plan in ((other, first), (one, second)):
                lost = await called(client, "plan_status", plan_id=plan["plan"]["plan_id"])
                assert lost["error"]["kind"] == "UnknownPlan"
            for client in (one, other):
                assert len((await called(client, "end_task"))["abandoned"]) == 1

    asyncio.run(story())

"""A refund that a person decides about, with the OpenAI Agents SDK.

    python with_openai_agents.py FOLDER INVOICE

It proposes the refund, stops, and keeps everything in FOLDER. Run it again whenever you like: it
goes on once the person has decided. The model is a script, so nothing is sent to any provider.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from agents import Agent, FunctionTool, Runner, RunState, set_tracing_disabled
from agents.items import TResponseOutputItem
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from agents.testing.model import ModelCall

from countersign_agent import AsyncClient, AsyncGuard, JsonFileStore
from countersign_agent.tools import AsyncToolbox, Offer, Tool

OFFERS = [Offer("billing", "refund", "pays money back: invoice_id, amount_cents")]
WAITING = ("wait", "replanning")


def for_this_framework(tools: AsyncToolbox) -> list[Any]:
    """Countersign's tools as the framework's. Proposing needs approval until people decided."""

    async def undecided(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        # The same wish again makes no second plan: it tells what became of the first.
        answer = await tools.call("propose_write", arguments)
        if answer["next_action"] in WAITING:
            print("waits for a person:", where(answer), flush=True)
        return answer["next_action"] in WAITING

    def wrapped(tool: Tool) -> FunctionTool:
        async def invoke(context: Any, arguments: str) -> str:
            return json.dumps(await tools.call(tool.name, arguments))

        return FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema=dict(tool.parameters),
            on_invoke_tool=invoke,
            strict_json_schema=False,
            needs_approval=undecided if tool.name == "propose_write" else False,
        )

    return [wrapped(tool) for tool in tools.tools]


async def main(folder: Path, invoice: str) -> None:
    set_tracing_disabled(True)
    client = AsyncClient(os.environ["COUNTERSIGN_URL"], os.environ["COUNTERSIGN_API_KEY"])
    guard = AsyncGuard(client, store=JsonFileStore(folder / "state.json"))
    task = guard.task(f"openai-agents-{invoice}")
    agent = Agent("support", tools=for_this_framework(AsyncToolbox(task, OFFERS)), model=script())
    saved = folder / "run.json"
    start: str | RunState[Any, Any] = f"Invoice {invoice} arrived broken. Pay 15.00 back."
    if saved.exists():
        start = await RunState.from_string(agent, saved.read_text())
        for item in start.get_interruptions():
            if not await item_is_undecided(agent, item):
                # Not an approval: that was given, or refused, in Countersign. The tool tells it.
                start.approve(item)
    result = await Runner.run(agent, start)
    if result.interruptions:
        saved.write_text(result.to_state().to_string())
        await task.suspend()
    else:
        print(result.final_output)
        await task.end("told the customer")
    await client.close()


async def item_is_undecided(agent: Agent[Any], item: Any) -> bool:
    """Ask the tool itself whether its call still waits."""
    tool = next(tool for tool in agent.tools if tool.name == item.tool_name)
    assert isinstance(tool, FunctionTool)
    assert callable(tool.needs_approval)
    return await tool.needs_approval(None, json.loads(item.arguments), "")  # type: ignore[arg-type]


def where(answer: dict[str, Any]) -> str:
    """The page where people decide, once there is a plan."""
    return str(answer.get("plan", {}).get("review_url") or answer["what_next"])


def told(answer: dict[str, Any]) -> str:
    """The end in a sentence: a plan has a status, a refusal has an error, both say what next."""
    if "error" in answer:
        error = answer["error"]
        return f"The refund is refused: {error['detail']} {answer['what_next']}"
    return f"The refund is {answer['status']}: {answer.get('result') or answer['what_next']}"


def script() -> ScriptedModel:
    """What a model would say."""

    def say(call: ModelCall) -> list[TResponseOutputItem]:
        last = call.input[-1] if isinstance(call.input, list) else {"content": call.input}
        if last.get("type") != "function_call_output":
            invoice = last["content"].split()[1]
            wish = {"invoice_id": invoice, "amount_cents": 1500}
            words = {"target": "billing", "operation": "refund", "reason": "It arrived broken."}
            return [function_call("propose_write", {**words, "inputs": wish}, call_id="call-1")]
        answer = json.loads(last["output"])
        return [assistant_message(told(answer))]

    return ScriptedModel([ModelStep.respond(say)] * 2)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))

"""A refund that a person decides about, with Pydantic AI.

    python with_pydantic_ai.py FOLDER INVOICE

It proposes the refund, stops, and keeps everything in FOLDER. Run it again whenever you like: it
goes on once the person has decided. The model is a script, so nothing is sent to any provider.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, CallDeferred, DeferredToolRequests, DeferredToolResults
from pydantic_ai import Tool as FrameworkTool
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from countersign_agent import AsyncClient, AsyncGuard, JsonFileStore
from countersign_agent.tools import AsyncToolbox, Offer, Tool

OFFERS = [Offer("billing", "refund", "pays money back: invoice_id, amount_cents")]
WAITING = ("wait", "replanning")


def for_this_framework(tools: AsyncToolbox) -> list[FrameworkTool[None]]:
    """Countersign's tools as the framework's. A call that waits for people is deferred."""

    def wrapped(tool: Tool) -> FrameworkTool[None]:
        async def call(**arguments: Any) -> dict[str, Any]:
            answer = await tools.call(tool.name, arguments)
            if tool.name == "propose_write" and answer["next_action"] in WAITING:
                raise CallDeferred(metadata={"review_url": where(answer)})
            return answer

        return FrameworkTool.from_schema(call, tool.name, tool.description, dict(tool.parameters))

    return [wrapped(tool) for tool in tools.tools]


async def main(folder: Path, invoice: str) -> None:
    client = AsyncClient(os.environ["COUNTERSIGN_URL"], os.environ["COUNTERSIGN_API_KEY"])
    guard = AsyncGuard(client, store=JsonFileStore(folder / "state.json"))
    task = guard.task(f"pydantic-ai-{invoice}")
    tools = AsyncToolbox(task, OFFERS)
    agent = Agent(
        FunctionModel(script),
        tools=for_this_framework(tools),
        output_type=[str, DeferredToolRequests],
    )
    saved = folder / "messages.json"
    if saved.exists():
        messages = ModelMessagesTypeAdapter.validate_json(saved.read_bytes())
        decided = await answers(tools, messages)
        result = await agent.run(message_history=messages, deferred_tool_results=decided)
    else:
        result = await agent.run(f"Invoice {invoice} arrived broken. Pay 15.00 back.")
    if isinstance(result.output, DeferredToolRequests):
        saved.write_bytes(result.all_messages_json())
        for told in result.output.metadata.values():
            print("waits for a person:", told["review_url"])
        await task.suspend()
    else:
        print(result.output)
        await task.end("told the customer")
    await client.close()


async def answers(tools: AsyncToolbox, messages: list[ModelMessage]) -> DeferredToolResults:
    """What became of the calls that were deferred; asking again makes no second plan."""
    last = messages[-1]
    assert isinstance(last, ModelResponse)
    found: dict[str, Any] = {}
    for call in last.tool_calls:
        answer = await tools.call(call.tool_name, call.args_as_dict())
        if answer["next_action"] in WAITING:
            sys.exit(f"still waits for a person: {where(answer)}")
        found[call.tool_call_id] = answer
    return DeferredToolResults(calls=found)


def where(answer: dict[str, Any]) -> str:
    """The page where people decide, once there is a plan."""
    return str(answer.get("plan", {}).get("review_url") or answer["what_next"])


def told(answer: dict[str, Any]) -> str:
    """The end in a sentence: a plan has a status, a refusal has an error, both say what next."""
    if "error" in answer:
        error = answer["error"]
        return f"The refund is refused: {error['detail']} {answer['what_next']}"
    return f"The refund is {answer['status']}: {answer.get('result') or answer['what_next']}"


def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """What a model would say."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        answer: Any = last.content
        return ModelResponse([TextPart(told(answer))])
    invoice = str(getattr(last, "content", "")).split()[1]
    wish = {"invoice_id": invoice, "amount_cents": 1500}
    words = {"target": "billing", "operation": "refund", "reason": "It arrived broken."}
    return ModelResponse([ToolCallPart("propose_write", {**words, "inputs": wish})])


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))

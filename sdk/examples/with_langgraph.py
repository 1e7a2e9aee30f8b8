"""A refund that a person decides about, with LangGraph.

    python with_langgraph.py FOLDER INVOICE

It proposes the refund, stops, and keeps everything in FOLDER. Run it again whenever you like: it
goes on once the person has decided. The model is a script, so nothing is sent to any provider.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from countersign_agent import Client, Guard, JsonFileStore
from countersign_agent.tools import Offer, Toolbox

OFFERS = [Offer("billing", "refund", "pays money back: invoice_id, amount_cents")]
WAITING = ("wait", "replanning")


def graph(tools: Toolbox, checkpoints: SqliteSaver) -> Any:
    """The model and the tools in turn, until the model calls none."""

    def think(state: MessagesState) -> dict[str, list[AnyMessage]]:
        # A real model: model.bind_tools(for_openai_chat(tools.tools)).invoke(state["messages"])
        return {"messages": [script(state["messages"])]}

    def act(state: MessagesState) -> dict[str, list[AnyMessage]]:
        (call,) = state["messages"][-1].tool_calls  # type: ignore[union-attr]
        # This node is run from its beginning again, and the same wish makes no second plan.
        while (answer := tools.call(call["name"], call["args"]))["next_action"] in WAITING:
            interrupt(where(answer))
        return {"messages": [ToolMessage(json.dumps(answer), tool_call_id=call["id"])]}

    def called(state: MessagesState) -> str:
        last = state["messages"][-1]
        return "act" if isinstance(last, AIMessage) and last.tool_calls else END

    built = StateGraph(MessagesState)
    built.add_node("think", think)
    built.add_node("act", act)
    built.add_edge(START, "think")
    built.add_conditional_edges("think", called, ["act", END])
    built.add_edge("act", "think")
    return built.compile(checkpointer=checkpoints)


def main(folder: Path, invoice: str) -> None:
    client = Client(os.environ["COUNTERSIGN_URL"], os.environ["COUNTERSIGN_API_KEY"])
    guard = Guard(client, store=JsonFileStore(folder / "state.json"))
    task = guard.task(f"langgraph-{invoice}")
    thread: RunnableConfig = {"configurable": {"thread_id": invoice}}
    with SqliteSaver.from_conn_string(str(folder / "graph.sqlite")) as checkpoints:
        agent = graph(Toolbox(task, OFFERS), checkpoints)
        asked = HumanMessage(f"Invoice {invoice} arrived broken. Pay 15.00 back.")
        resumed = bool(agent.get_state(thread).next)
        # What it resumes with says nothing: the decision is in Countersign, and the tool tells it.
        state = agent.invoke(Command(resume=True) if resumed else {"messages": [asked]}, thread)
    if "__interrupt__" in state:
        print("waits for a person:", state["__interrupt__"][0].value)
        task.suspend()
    else:
        print(state["messages"][-1].content)
        task.end("told the customer")
    client.close()


def where(answer: dict[str, Any]) -> str:
    """The page where people decide, once there is a plan."""
    return str(answer.get("plan", {}).get("review_url") or answer["what_next"])


def told(answer: dict[str, Any]) -> str:
    """The end in a sentence: a plan has a status, a refusal has an error, both say what next."""
    if "error" in answer:
        error = answer["error"]
        return f"The refund is refused: {error['detail']} {answer['what_next']}"
    return f"The refund is {answer['status']}: {answer.get('result') or answer['what_next']}"


def script(messages: list[AnyMessage]) -> AIMessage:
    """What a model would say."""
    last = messages[-1]
    if isinstance(last, ToolMessage):
        answer = json.loads(str(last.content))
        return AIMessage(told(answer))
    wish = {"invoice_id": str(last.content).split()[1], "amount_cents": 1500}
    words = {"target": "billing", "operation": "refund", "reason": "It arrived broken."}
    call = {"name": "propose_write", "args": {**words, "inputs": wish}, "id": "call-1"}
    return AIMessage("", tool_calls=[call])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

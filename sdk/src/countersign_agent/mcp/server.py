"""The protocol's side: which tools there are, and a call's way to the desk. It asks nobody."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from starlette.requests import Request

from countersign_agent.mcp.desk import Desk
from countersign_agent.tools import TOOLS, WAIT_FOR_DECISION, for_mcp, offering
from countersign_agent.tools.answers import Answer

NAME: Final = "countersign"
TASK_HEADER: Final = "countersign-task"
MCP_TOOLS: Final = (*TOOLS[:2], WAIT_FOR_DECISION, *TOOLS[2:])
INSTRUCTIONS: Final = (
    "Writes at these targets need a person. propose_write plans one and asks for a decision;"
    " wait_for_decision or plan_status tells what came of it; do what next_action says. A plan is"
    " for exactly its inputs. Report every other write with report_write, and call end_task when"
    " the task is over. Nobody can approve in this conversation: people decide in Countersign."
)

type Context = ServerRequestContext[dict[str, Any], Any]


def build(desk: Desk) -> Server[dict[str, Any]]:
    """The server for either transport. It has tools alone: no prompts, and it elicits nothing."""
    tools = [
        types.Tool.model_validate(shape)
        for shape in for_mcp(offering(desk.settings.offers, MCP_TOOLS))
    ]

    async def list_tools(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        task_id = _task_of(context.request)
        return _result(await desk.call(params.name, params.arguments, task_id))

    return Server(
        NAME,
        version=_version(),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _task_of(request: object) -> str:
    """Over HTTP the client's program may name the task; the model has no say in it."""
    if not isinstance(request, Request):
        return ""
    return request.headers.get(TASK_HEADER, "")


def _result(answer: Answer) -> types.CallToolResult:
    text = json.dumps(answer, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=answer,
        is_error="error" in answer,
    )


def _version() -> str:
    try:
        return version("countersign-agent")
    except PackageNotFoundError:
        return ""

"""The same tools in the shapes that model APIs and MCP take; plain JSON values, yours to change."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final, get_args

from countersign_agent.problems import NextAction
from countersign_agent.tools.definitions import TOOLS, Tool

OUTPUT_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "next_action": {"type": "string", "enum": list(get_args(NextAction))},
        "what_next": {"type": "string"},
        "status": {"type": "string"},
        "plan": {"type": "object", "required": ["plan_id", "status"]},
        "error": {"type": "object", "required": ["kind", "detail"]},
    },
    "required": ["next_action", "what_next"],
}
"""Every answer of every tool; further members belong to the tool."""


def for_openai(tools: Sequence[Tool] = TOOLS) -> list[dict[str, Any]]:
    """For the Responses API. Not `strict`: that cannot express an operation's own inputs."""
    return [{"type": "function", **_function(tool)} for tool in tools]


def for_openai_chat(tools: Sequence[Tool] = TOOLS) -> list[dict[str, Any]]:
    """For Chat Completions, and what speaks its shape."""
    return [{"type": "function", "function": _function(tool)} for tool in tools]


def for_anthropic(tools: Sequence[Tool] = TOOLS) -> list[dict[str, Any]]:
    """For the Messages API."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": _parameters(tool),
        }
        for tool in tools
    ]


def for_mcp(tools: Sequence[Tool] = TOOLS) -> list[dict[str, Any]]:
    """For the answer to `tools/list`."""
    return [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": _parameters(tool),
            "outputSchema": copy.deepcopy(OUTPUT_SCHEMA),
            "annotations": {
                "title": tool.title,
                "readOnlyHint": tool.read_only,
                "destructiveHint": tool.destructive,
                "idempotentHint": tool.idempotent,
                "openWorldHint": False,
            },
        }
        for tool in tools
    ]


def _function(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": _parameters(tool),
        "strict": False,
    }


def _parameters(tool: Tool) -> dict[str, Any]:
    return copy.deepcopy(dict(tool.parameters))

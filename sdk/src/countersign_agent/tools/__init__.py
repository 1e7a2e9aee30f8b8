"""Tools for models: what a model may ask for, in the shapes of OpenAI, Anthropic and MCP.

No tool takes or returns a plan token (SEC-38): it lives in the task's state, and the guard fills it
in. No tool can decide.
"""

from countersign_agent.tools.commits import COMMIT_SCHEMA, CommitIncomplete, commit_call
from countersign_agent.tools.definitions import (
    END_TASK,
    PLAN_STATUS,
    PROPOSE_WRITE,
    REPORT_WRITE,
    TOOLS,
    WAIT_FOR_DECISION,
    WITHDRAW,
    Offer,
    Tool,
    offering,
)
from countersign_agent.tools.shapes import (
    OUTPUT_SCHEMA,
    for_anthropic,
    for_mcp,
    for_openai,
    for_openai_chat,
)
from countersign_agent.tools.toolbox import AsyncToolbox, Toolbox

__all__ = [
    "COMMIT_SCHEMA",
    "END_TASK",
    "OUTPUT_SCHEMA",
    "PLAN_STATUS",
    "PROPOSE_WRITE",
    "REPORT_WRITE",
    "TOOLS",
    "WAIT_FOR_DECISION",
    "WITHDRAW",
    "AsyncToolbox",
    "CommitIncomplete",
    "Offer",
    "Tool",
    "Toolbox",
    "commit_call",
    "for_anthropic",
    "for_mcp",
    "for_openai",
    "for_openai_chat",
    "offering",
]

"""`countersign-agent`: what this package does from a command line."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence

_MISSING = "The MCP server needs its libraries: pip install 'countersign-agent[mcp]'"


def main(arguments: Sequence[str] | None = None) -> int:
    """0: it ended as it was told to. 2: it cannot start, and says why on stderr."""
    options = _parser().parse_args(arguments)
    try:
        from countersign_agent.mcp import running
        from countersign_agent.mcp.desk import Desk
        from countersign_agent.mcp.settings import Listening, Settings, SettingsFault
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("countersign_agent"):
            raise
        return _refused(_MISSING)
    try:
        desk = Desk.opened(Settings.read(os.environ))
        if options.http:
            listening = Listening.read(os.environ, options.host, options.port)
            asyncio.run(running.over_http(desk, listening))
        else:
            asyncio.run(running.over_stdio(desk))
    except SettingsFault as fault:
        return _refused(str(fault))
    except KeyboardInterrupt:
        return 0
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="countersign-agent", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    server = commands.add_parser("mcp", help="serve the tools over the Model Context Protocol")
    server.add_argument("--http", action="store_true", help="streamable HTTP instead of stdio")
    server.add_argument("--host", default="127.0.0.1", help="where to listen (%(default)s)")
    server.add_argument("--port", type=int, default=8790, help="(%(default)s)")
    return parser


def _refused(why: str) -> int:
    print(f"countersign-agent: {why}", file=sys.stderr)
    return 2

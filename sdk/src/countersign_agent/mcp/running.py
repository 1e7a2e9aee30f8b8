"""Serves over stdin and stdout, or over streamable HTTP for those who have the bearer token."""

from __future__ import annotations

import hmac
import sys
from typing import Final

import uvicorn
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from countersign_agent.mcp.desk import Desk
from countersign_agent.mcp.server import build
from countersign_agent.mcp.settings import Listening
from countersign_agent.secret import Secret

PATH: Final = "/mcp"
LARGEST_BODY: Final = 256 * 1024


async def over_stdio(desk: Desk) -> None:
    """Until stdin ends. Nothing but the protocol is written to stdout."""
    async with desk, stdio_server() as (read, write):
        server = build(desk)
        await server.run(read, write, server.create_initialization_options())


async def over_http(desk: Desk, listening: Listening) -> None:
    """Until it is told to stop (SIGINT, SIGTERM)."""
    async with desk:
        config = uvicorn.Config(
            application(desk, listening),
            host=listening.host,
            port=listening.port,
            access_log=False,
            log_level="warning",
            timeout_graceful_shutdown=5,
            server_header=False,
        )
        host = f"[{listening.host}]" if ":" in listening.host else listening.host
        print(f"http://{host}:{listening.port}{PATH}", file=sys.stderr, flush=True)
        await uvicorn.Server(config).serve()


def application(desk: Desk, listening: Listening) -> ASGIApp:
    """Stateless: what a client has to remember is a plan ID, and a restart loses no session."""
    inner = build(desk).streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=LARGEST_BODY,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=list(listening.hosts),
            allowed_origins=list(listening.origins),
        ),
    )
    return Bearer(inner, listening.token)


class Bearer:
    """Lets requests through that have the token; everybody else gets 401 and learns nothing."""

    def __init__(self, app: ASGIApp, token: Secret) -> None:
        self.app = app
        self.expected = f"Bearer {token.reveal()}".encode()

    def __repr__(self) -> str:
        return "Bearer(…)"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._allowed(scope):
            await self.app(scope, receive, send)
            return
        refusal = JSONResponse(
            {"error": "invalid_token"}, 401, headers={"WWW-Authenticate": "Bearer"}
        )
        await refusal(scope, receive, send)

    def _allowed(self, scope: Scope) -> bool:
        if scope["type"] != "http":
            return False
        given = Headers(scope=scope).getlist("authorization")
        return len(given) == 1 and hmac.compare_digest(given[0].encode(), self.expected)

"""A target in Starlette or FastAPI: `app.mount("/billing", router(target))`."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from countersign_target.exchanges import Request
from countersign_target.target import Target


def router(target: Target) -> Router:
    """Every address of the target, and its refusals for all others: mount it apart.

    Each request runs in a thread of the pool, as stores and owners' functions block.
    """
    return Router(routes=[Route("/{path:path}", _Endpoint(target))])


class _Endpoint:
    # A class: a function would be bound to GET.
    def __init__(self, target: Target) -> None:
        self.target = target

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = StarletteRequest(scope, receive)
        request = Request(
            asked.method,
            f"/{asked.path_params['path']}",
            dict(asked.headers),
            await self._body(asked),
            dict(asked.query_params),
        )
        answer = await run_in_threadpool(self.target.answer, request)
        await Response(answer.text, answer.status, answer.whole_headers)(scope, receive, send)

    async def _body(self, asked: StarletteRequest) -> bytes:
        """The body, or as much of it as is too much."""
        body = bytearray()
        async for chunk in asked.stream():
            body += chunk
            if len(body) > self.target.max_body:
                break
        return bytes(body)

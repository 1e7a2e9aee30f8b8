"""Who calls, what every endpoint refuses alike, and what a request may wait for (A-5, A-16)."""

from typing import Any, Final, Literal, cast

from django.http import HttpRequest
from ninja.security import HttpBearer

from plans.changes import SCOPE_KEY, Wait
from plans.edge import wait_seconds
from plans.keys import Caller, Scope, authenticate
from plans.representation import Members

# Every refusal has the same form, whatever its status.
REFUSALS: Final = frozenset({400, 401, 403, 404, 409, 413, 415, 422, 429, 503})
READ_REFUSALS: Final = frozenset({401, 403, 404, 422, 503})


class ApiRequest(HttpRequest):
    """A request whose key was good."""

    auth: Caller


class ApiKey(HttpBearer):
    """`Authorization: Bearer cs_<id>_<secret>`, with one scope."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> Caller:
        caller = authenticate(request.headers.get("Authorization", ""))
        caller.demand(self.scope)
        return caller

    def authenticate(self, request: HttpRequest, token: str) -> Caller:
        return authenticate(f"Bearer {token}")


MAY_WRITE: Final = ApiKey("plans:write")
MAY_READ: Final = ApiKey("plans:read")
MAY_REPLAN: Final = ApiKey("replans:work")


def parameter(name: str, where: Literal["query", "header"], about: str, **schema: Any) -> Members:
    return {
        "in": where,
        "name": name,
        "required": False,
        "description": about,
        "schema": {"type": "string", **schema},
    }


WAITING: Final = {
    "parameters": [
        parameter("If-None-Match", "header", "The ETag you have; 304 when it is still the one."),
        parameter("Prefer", "header", "`wait=N`: hold the 304 back for up to N ≤ 30 seconds."),
    ],
    "responses": {304: {"description": "Not modified"}},
}
WAITING_FOR_WORK: Final = {
    "parameters": [parameter("Prefer", "header", "`wait=N`: wait for work, up to N ≤ 30 seconds.")],
}
FEED: Final = {
    "parameters": [
        parameter("after", "query", "`next` of the page before; absent: from the beginning."),
        parameter("limit", "query", "1 to 200.", type="integer", minimum=1, maximum=200),
        parameter("Prefer", "header", "`wait=N`: hold an empty page back, up to N ≤ 30 seconds."),
    ],
}
FILTERS: Final = {
    "parameters": [
        parameter("status", "query", "Only plans in this status."),
        parameter("task_id", "query", "Only plans of this task."),
        parameter("intent_id", "query", "Only plans of this intent.", format="uuid"),
        parameter("cursor", "query", "`next` of the page before."),
        parameter("limit", "query", "1 to 200.", type="integer", minimum=1, maximum=200),
    ],
}


def offer_to_wait(request: ApiRequest, *keys: str, unconditionally: bool = False) -> None:
    """Tell `config.asgi` what would change this answer, if the caller prefers to wait for it.

    A resource waits only for a caller that names the ETag it has; a feed, whose cursor is in
    its address, `unconditionally`.
    """
    wait = cast("dict[str, Any]", getattr(request, "scope", {})).get(SCOPE_KEY)
    if not isinstance(wait, Wait):
        return
    if not unconditionally:
        wait.tag_keys.update(keys)
    if wait_seconds(request.headers.get("Prefer", "")) is not None:
        wait.nothing_new = unconditionally
        if unconditionally or "If-None-Match" in request.headers:
            wait.keys.update(keys)

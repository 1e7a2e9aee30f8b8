"""Targets: systems that own data and offer a dry run, a commit and a read of a plan by its ID.

An adapter carries requests and says truthfully what came back; it judges nothing and repeats
nothing. `HttpTarget` speaks the contract of docs/api.md, "What a target offers"; for anything else
write a class with the same three methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypedDict, Unpack
from urllib.parse import quote

from countersign_agent.exchanges import Exchange, Request
from countersign_agent.secret import Secret
from countersign_agent.transports import AsyncHttpPort, HttpPort

TARGET_SECONDS: Final = 45.0


@dataclass(frozen=True, slots=True)
class Promises:
    """What a target's owner vouches for; without a promise the guard is more careful."""

    idempotency: bool = True
    """The same key again gives the stored answer. Without it a commit is sent once, ever."""
    enforces_expiry: bool = False
    """It refuses an expired plan itself, so an unknown commit may be retried after the expiry."""
    consumed_plans_readable: bool = False
    """Plans stay readable, so that a 404 says that the plan was not applied."""
    key_retention_seconds: float = 300.0
    """How long it remembers a key: nothing is sent again after half of that."""


@dataclass(frozen=True, slots=True)
class CommitCall:
    """One commit to carry: these bytes, these names, nothing else."""

    operation: str
    plan_id: str
    body: Secret
    idempotency_key: str
    attempt: int


class Target(Protocol):
    """What a guard in threads needs of a target. No method raises for what the target answers."""

    @property
    def promises(self) -> Promises: ...

    @property
    def seconds(self) -> float:
        """The longest that one commit takes."""

    def dry_run(self, operation: str, inputs: bytes) -> Exchange:
        """Send exactly these bytes; the answer's body is the dry-run response."""

    def commit(self, call: CommitCall) -> Exchange:
        """Send `call.body` with the key, once."""

    def read(self, plan_id: str) -> Exchange:
        """The plan as it is now, without its token."""


class AsyncTarget(Protocol):
    """The same for a guard on the event loop."""

    @property
    def promises(self) -> Promises: ...

    @property
    def seconds(self) -> float: ...

    async def dry_run(self, operation: str, inputs: bytes) -> Exchange: ...

    async def commit(self, call: CommitCall) -> Exchange: ...

    async def read(self, plan_id: str) -> Exchange: ...


@dataclass(frozen=True, slots=True)
class Routes:
    """Where an HTTP target has what, and the credential for it."""

    base_url: str
    credential: Secret
    dry_run_path: str = "/{operation}/dry_run"
    commit_path: str = "/{operation}/commit"
    plan_path: str = "/plans/{plan_id}"
    key_style: Literal["bare", "sf-string"] = "bare"
    seconds: float = TARGET_SECONDS
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def dry_run(self, operation: str, inputs: bytes) -> Request:
        return self._request("POST", self.dry_run_path, inputs, operation=operation)

    def commit(self, call: CommitCall) -> Request:
        key = call.idempotency_key
        named = {
            "Idempotency-Key": key if self.key_style == "bare" else f'"{key}"',
            "Plan-Id": call.plan_id,
            "Attempt": str(call.attempt),
        }
        body = call.body.reveal().encode()
        return self._request("POST", self.commit_path, body, named, operation=call.operation)

    def read(self, plan_id: str) -> Request:
        return self._request("GET", self.plan_path, plan_id=plan_id)

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        named: Mapping[str, str] | None = None,
        **names: str,
    ) -> Request:
        headers = {**self.headers, **(named or {}), "Accept": "application/json"}
        headers["Authorization"] = f"Bearer {self.credential.reveal()}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        filled = path.format(**{name: quote(value, safe="") for name, value in names.items()})
        return Request(method, self.base_url.rstrip("/") + filled, headers, body, self.seconds)


class RouteOptions(TypedDict, total=False):
    """What `Routes` takes beside address and credential."""

    dry_run_path: str
    commit_path: str
    plan_path: str
    key_style: Literal["bare", "sf-string"]
    seconds: float
    headers: Mapping[str, str]


class HttpTarget:
    """A target over HTTP, for a guard in threads.

        HttpTarget("https://billing.example.com", credential="…")

    Behind Countersign the credential may dry-run and read, and its commit is refused (SEC-38); for
    the direct way it commits too. Further arguments are those of `Routes`.
    """

    def __init__(
        self,
        base_url: str,
        credential: str,
        *,
        promises: Promises | None = None,
        port: HttpPort | None = None,
        **routes: Unpack[RouteOptions],
    ) -> None:
        self.routes = Routes(base_url, Secret(credential), **routes)
        self.promises = promises or Promises()
        self.seconds = self.routes.seconds
        self._port = port or HttpPort()

    def dry_run(self, operation: str, inputs: bytes) -> Exchange:
        return self._port.send(self.routes.dry_run(operation, inputs))

    def commit(self, call: CommitCall) -> Exchange:
        return self._port.send(self.routes.commit(call))

    def read(self, plan_id: str) -> Exchange:
        return self._port.send(self.routes.read(plan_id))

    def close(self) -> None:
        """Close its connections."""
        self._port.close()


class AsyncHttpTarget:
    """A target over HTTP, for a guard on the event loop; arguments as for `HttpTarget`."""

    def __init__(
        self,
        base_url: str,
        credential: str,
        *,
        promises: Promises | None = None,
        port: AsyncHttpPort | None = None,
        **routes: Unpack[RouteOptions],
    ) -> None:
        self.routes = Routes(base_url, Secret(credential), **routes)
        self.promises = promises or Promises()
        self.seconds = self.routes.seconds
        self._port = port or AsyncHttpPort()

    async def dry_run(self, operation: str, inputs: bytes) -> Exchange:
        return await self._port.send(self.routes.dry_run(operation, inputs))

    async def commit(self, call: CommitCall) -> Exchange:
        return await self._port.send(self.routes.commit(call))

    async def read(self, plan_id: str) -> Exchange:
        return await self._port.send(self.routes.read(plan_id))

    async def close(self) -> None:
        """Close its connections."""
        await self._port.close()

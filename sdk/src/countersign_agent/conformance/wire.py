"""How the check reaches a target: one call, by one of three callers, and what came of it.

The check opens no socket itself. The command line gives it `HttpWire`; Countersign gives it a wire
of its own, through the address checks that every call of the app passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from countersign_agent.exchanges import NOTHING, Exchange, Request
from countersign_agent.secret import Secret
from countersign_agent.transports import HttpPort

# What the app reads of an answer at most (T-4).
LARGEST_READ: Final = 2**20


class Who(StrEnum):
    """Whose credential a call carries."""

    APP = "app"
    AGENT = "agent"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `path` is appended to the target's base URL; a body may hold a plan token."""

    method: str
    path: str
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default=NOTHING, repr=False)
    who: Who = Who.APP


class Wire(Protocol):
    """A way to one target. Safe to use from several threads at once."""

    @property
    def seconds(self) -> float:
        """The longest that one call takes."""

    @property
    def has_agent(self) -> bool:
        """Whether there is an agent's credential."""

    @property
    def secrets(self) -> Sequence[Secret]:
        """What no report may repeat."""

    def send(self, call: Call) -> Exchange:
        """One call, once. Raises nothing for what the target or the network does."""


class HttpWire:
    """Calls from this process, as the SDK makes them."""

    def __init__(
        self,
        base_url: str,
        app: Secret | None,
        agent: Secret | None,
        *,
        seconds: float,
        port: HttpPort | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.seconds = seconds
        self._credentials = {Who.APP: app, Who.AGENT: agent, Who.NOBODY: None}
        self._port = port or HttpPort()

    @property
    def has_agent(self) -> bool:
        return self._credentials[Who.AGENT] is not None

    @property
    def secrets(self) -> Sequence[Secret]:
        return [each for each in self._credentials.values() if each is not None]

    def send(self, call: Call) -> Exchange:
        return self.send_to(self.base_url + call.path, call)

    def send_to(self, url: str, call: Call) -> Exchange:
        """The same for an address of its own; for the request that moves the world."""
        headers = {"Accept": "application/json, application/problem+json"}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        headers |= call.headers
        credential = self._credentials[call.who]
        if credential is not None:
            headers["Authorization"] = f"Bearer {credential.reveal()}"
        request = Request(call.method, url, headers, call.body, self.seconds, LARGEST_READ)
        return self._port.send(request)

    def close(self) -> None:
        """Close its connections."""
        self._port.close()

"""The part of the file that every ready target has: where it listens, and who may ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from countersign_target import asked_lifespan
from countersign_target.operations import Lifespan
from countersign_target.ready.settings import Table

SHORTEST: Final = 8
SHORTEST_PLAN: Final = 2


@dataclass(frozen=True, slots=True)
class Service:
    """Address, the two credentials, and how long plans and keys live. Seconds."""

    host: str
    port: int
    app_token: str = field(repr=False)
    agent_token: str = field(repr=False)
    plan_seconds: int
    key_retention_seconds: int

    @property
    def lifespan(self) -> Lifespan:
        """How long a plan can be committed; a caller may ask for less, which harms nobody."""
        usual = timedelta(seconds=self.plan_seconds)
        return asked_lifespan(usual, timedelta(seconds=SHORTEST_PLAN), usual)


def read_service(table: Table) -> Service:
    """The table `server`."""
    service = Service(
        host=table.text("host", "127.0.0.1"),
        port=table.whole("port", least=0, most=65_535),
        app_token=table.secret("app_token"),
        agent_token=table.secret("agent_token"),
        plan_seconds=table.whole("plan_seconds", 600, least=SHORTEST_PLAN, most=86_400),
        key_retention_seconds=table.whole("key_retention_seconds", 86_400, least=3_600),
    )
    tokens = (service.app_token, service.agent_token)
    if service.app_token == service.agent_token or min(map(len, tokens)) < SHORTEST:
        raise table.wrong("agent_token", f"two different tokens of {SHORTEST} characters or more")
    return service

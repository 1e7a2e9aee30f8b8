"""Who acts on the stage: an agent that makes its own dry runs, and the socket that clogs."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.faults.scripted_target import ScriptedTarget
from tests.journeys.people import Agent, Draft, Plan
from tests.outages.stage import Stage, new_invoice
from tests.plans.planning_target import dry_run, in_seconds


class StageAgent(Agent):
    """The support agent; the scripted target knows its plans as if it had made them."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.credentials)
        self.target = stage.target

    def dry_run(self, invoice: str, cents: int = 48_000, lives: int | None = None) -> Draft:
        inputs = {"amount_cents": cents, "invoice_id": invoice}
        plan = dry_run(inputs, expires_at=in_seconds(lives or 600))
        told = {name: value for name, value in plan.items() if name != "plan_token"}
        self.target.plans[plan["plan_id"]] = told | {"inputs": inputs}
        return Draft(json.dumps(inputs), plan)

    def wait(self, plan: Plan, reached: Callable[[Plan], bool], seconds: float = 40.0) -> Plan:
        return super().wait(plan, reached, seconds)

    def fresh(self, lives: int | None = None) -> Plan:
        """A plan on an invoice of its own that people can decide on."""
        return self.pending(new_invoice(), lives=lives)


@contextmanager
def clogged(target: ScriptedTarget) -> Iterator[None]:
    """Connections to the target are neither taken nor refused: a caller hangs before its send."""
    address = ("127.0.0.1", int(target.base_url.rpartition(":")[2]))
    target.leave()
    with socket.socket() as full:
        full.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        full.bind(address)
        full.listen(0)
        with socket.create_connection(address):
            yield
    target.come_back()

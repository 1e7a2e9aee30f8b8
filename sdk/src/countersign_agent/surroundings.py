"""What every flow of the guard works with: ports, stores, clocks, and how patient it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from countersign_agent.api import Api
from countersign_agent.calling import Pause
from countersign_agent.errors import NotConfigured
from countersign_agent.flows import Flow, do
from countersign_agent.instants import Clock, now
from countersign_agent.state import TaskState
from countersign_agent.stores import Store
from countersign_agent.targets import AsyncTarget, Target

if TYPE_CHECKING:
    from countersign_agent.desk import Desk

RETRY_DELAYS = (1.0, 3.0, 9.0, 20.0)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the guard goes on by itself; all in seconds."""

    commit: float = 60.0
    """For one `commit()`: after that an outcome that is not known is told as `unknown`."""
    retry_delays: tuple[float, ...] = RETRY_DELAYS
    """Before each resend of an unknown commit, ± 20 %; their number is the most resends (T-9)."""
    read_every: float = 5.0
    """Between reads of a plan whose commit is not sent any more."""
    ending: float = 10.0
    """To find out what became of unknown commits when a task ends."""


@dataclass(slots=True)
class Surroundings:
    """One guard's. `targets` by name."""

    api: Api | None
    targets: Mapping[str, Target | AsyncTarget]
    store: Store
    pause: Pause
    clock: Clock = now
    patience: Patience = field(default_factory=Patience)
    monotonic: Callable[[], float] = time.monotonic
    desks: dict[str, Desk] = field(default_factory=dict)
    """The tasks that are open now: a write may touch the plans of any of them."""

    def open_desks(self) -> list[Desk]:
        return list(self.desks.values())

    def target(self, name: str) -> Target | AsyncTarget:
        """NotConfigured for a name that the guard was not given."""
        if name not in self.targets:
            raise NotConfigured(f"The guard has no target named {name!r}.")
        return self.targets[name]

    def server(self) -> Api:
        """NotConfigured for a guard that knows the direct way alone."""
        if self.api is None:
            raise NotConfigured("The guard has no client, so nobody can review a plan.")
        return self.api

    def keep(self, state: TaskState) -> Flow[None]:
        """Store a state durably. The later of two at once is the one that stays."""
        yield from do(_save, self.store, state)

    def wait(self, seconds: float) -> Flow[None]:
        """Do nothing for a while."""
        yield from do(self.pause, seconds)


def _save(store: Store, state: TaskState) -> None:
    with state.saving:
        store.save(state.task_id, state.text())

"""Another system that a target writes to, and what may happen to a write on its way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from countersign_target import (
    Action,
    Applied,
    Conflict,
    Outcome,
    Plan,
    Planned,
    SendAgain,
    State,
    Unknown,
)


class Killed(BaseException):
    """What a SIGKILL leaves: nothing after it runs, and nothing handles it."""


@dataclass
class Remote:
    """Another system with one object, which guards its writes by a version (If-Match)."""

    size: int = 1
    version: int = 1
    writes: int = 0
    # What happens to the next write: before it arrives, or after.
    before: BaseException | None = None
    after: BaseException | None = None
    answers: Any = None
    away: bool = False
    sees: Outcome | None = None
    sent: list[int] = field(default_factory=list)

    def plan(self, inputs: dict[str, Any], state: State) -> Planned:
        assert state.connection is None
        if self.away:
            raise ConnectionError("no route to host")
        state.cover("thing/1", {"size": self.size})
        action = Action("update", "thing/1", "size", self.size, inputs["size"])
        return Planned([action], {"version": self.version})

    def apply(self, plan: Plan) -> Any:
        assert plan.connection is None
        self.sent.append(plan.sends)
        before, self.before = self.before, None
        if before:
            raise before
        if plan.details["version"] != self.version:
            raise Conflict
        self.size, self.version = plan.actions[0]["to"], self.version + 1
        self.writes += 1
        after, self.after = self.after, None
        if after:
            raise after
        return self.answers or {"size": self.size}

    def look(self, plan: Plan) -> Outcome:
        if self.sees:
            return self.sees
        if self.version == plan.details["version"]:
            return SendAgain()
        return Applied({"size": self.size}) if self.size == plan.inputs["size"] else Unknown()

    def moves(self, size: int) -> None:
        self.size, self.version = size, self.version + 1

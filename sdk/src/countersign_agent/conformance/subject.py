"""What is checked: one operation of one target, and what its owner declares about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import quote

RUN_SECONDS: Final = 300.0
WAIT_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Subject:
    """Where the operation has what, and inputs to plan with.

    `inputs`: one JSON object per wish, as the bytes that are sent. When the target says
    `nothing-to-change` to one, the next is tried: a write that sets a value needs two values to
    go to and fro.
    """

    operation: str
    inputs: Sequence[bytes] = field(repr=False)
    dry_run_path: str = "/{operation}/dry_run"
    commit_path: str = "/{operation}/commit"
    plan_path: str = "/plans/{plan_id}"
    key_style: Literal["bare", "sf-string"] = "bare"
    key_retention_seconds: float | None = None
    """How long the target keeps keys, as its registration with the app declares it."""
    short_plans: Mapping[str, str] = field(default_factory=dict)
    """Headers that make this target's dry run give a plan of a few seconds."""

    def dry_run(self) -> str:
        return self.dry_run_path.replace("{operation}", quote(self.operation, safe=""))

    def commit(self) -> str:
        return self.commit_path.replace("{operation}", quote(self.operation, safe=""))

    def plan(self, plan_id: str) -> str:
        return self.plan_path.replace("{plan_id}", quote(plan_id, safe=""))


class MoveFailed(Exception):
    """The world did not move as it was told to; the message says why, in words of our own."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What this run may do to the target, and how long it may take; seconds."""

    commits: bool = False
    """Plans may be applied: the inputs really happen, several times."""
    move: Callable[[], None] | None = None
    """Changes something that the plans cover, past the contract. Raises MoveFailed."""
    restore: Callable[[], None] | None = None
    """Undoes one `move`."""
    wait_seconds: float = WAIT_SECONDS
    """The longest wait for a plan to expire."""
    run_seconds: float = RUN_SECONDS
    """After that nothing more is begun."""

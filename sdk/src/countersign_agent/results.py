"""What the server answers, as immutable values. Members that are unknown here are left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from countersign_agent.documents import Json
from countersign_agent.problems import NextAction
from countersign_agent.reading import Read


@dataclass(frozen=True, slots=True)
class Action(Read):
    """One change of a plan; `target` is the object, like `invoice/4412`."""

    op: str
    target: str
    field: str
    from_: Json
    to: Json


@dataclass(frozen=True, slots=True)
class Change(Read):
    """What is not as it was planned from."""

    path: str
    planned: Json = None
    current: Json = None


@dataclass(frozen=True, slots=True)
class Approvals(Read):
    given: int
    required: int


@dataclass(frozen=True, slots=True)
class Decision(Read):
    """One person's verdict on one plan."""

    verdict: Literal["approve", "reject", "request_changes"]
    note: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Conflict(Read):
    changed: tuple[Change, ...] | None
    plan_created_at: str | None = None


@dataclass(frozen=True, slots=True)
class TargetProblem(Read):
    """What the target said instead of applying it."""

    status: int | None
    code: str | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class Commit(Read):
    """What became of the commit."""

    idempotency_key: str
    attempts: int
    result: Json
    problem: TargetProblem | None
    applied_out_of_band: bool = False
    conflict: Conflict | None = None


@dataclass(frozen=True, slots=True)
class Replan(Read):
    """One queued piece of work that gets a fresh plan."""

    id: int
    cause: str
    mode: Literal["server", "agent"]
    status: str
    reason: str
    tries: int
    next_try_at: str | None
    last_error: str


@dataclass(frozen=True, slots=True)
class PlanLinks(Read):
    self: str
    review: str
    intent: str


@dataclass(frozen=True, slots=True)
class Plan(Read):
    """A plan as the server holds it. No token."""

    plan_id: str
    target: str
    operation: str
    status: str
    revision: int
    intent_id: str
    task_id: str
    expires_at: datetime
    decide_by: datetime
    decide_in_ms: int | None
    server_time: datetime
    input_fingerprint: str
    content_digest: str | None
    actions: tuple[Action, ...]
    verified: bool
    approvals: Approvals
    decision: Decision | None
    commit: Commit
    replaces: str | None
    replaced_by: str | None
    replan: Replan | None
    next_action: NextAction
    links: PlanLinks
    etag: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Abandonment:
    """The plan, and what came of the wish to end its intent."""

    plan: Plan
    outcome: Literal["abandoned", "abandon_noted", "already_closed"]


@dataclass(frozen=True, slots=True)
class PlanPage(Read):
    items: tuple[Plan, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class Asked(Read):
    """In the agent's own words; `inputs` byte for byte."""

    inputs: str
    summary: str
    reason: str


@dataclass(frozen=True, slots=True)
class Moved(Read):
    """Why the current plan is not the one before, and how it differs."""

    replaces: str
    cause: str
    conflict: tuple[Change, ...] | None
    before: tuple[Action, ...]
    after: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class IntentLinks(Read):
    self: str
    plan: str | None


@dataclass(frozen=True, slots=True)
class Intent(Read):
    """What was asked, what is planned, what changed, what people said."""

    intent_id: str
    target: str
    operation: str
    task_id: str
    status: str
    closed_reason: str | None
    asked: Asked
    planned: tuple[Action, ...] | None
    changed: Moved | None
    decision: Decision | None
    plan: Plan | None
    replan: Replan | None
    created_at: datetime
    lives_until: datetime
    server_time: datetime
    next_action: NextAction
    links: IntentLinks
    etag: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Claim(Read):
    """A re-plan in this agent's hands for 60 seconds, and the dead plan that it replaces."""

    id: int
    cause: str
    reason: str
    tries: int
    intent_id: str
    target: str
    operation: str
    task_id: str
    asked: Asked
    plan: Plan | None


@dataclass(frozen=True, slots=True)
class Writes(Read):
    """Plans that a write made stale, and those in flight that it could not."""

    stale: tuple[Plan, ...]
    in_flight: tuple[Plan, ...]


@dataclass(frozen=True, slots=True)
class EndedTask(Read):
    """What was abandoned with the task, and what the target still decides."""

    abandoned: tuple[Plan, ...]
    in_flight: tuple[Plan, ...]


@dataclass(frozen=True, slots=True)
class Event(Read):
    """One change of this agent's plans."""

    id: int
    at: datetime
    type: str
    target: str | None
    plan_id: str | None
    intent_id: str | None
    task_id: str | None = None
    from_: str | None = None
    to: str | None = None


@dataclass(frozen=True, slots=True)
class EventPage(Read):
    items: tuple[Event, ...]
    next: str

"""What the REST interface answers, as its document describes it (A-6, A-12, A-16).

`plans.representation` makes these members; a test holds the two together.
"""

from typing import Any, Literal

from pydantic import BaseModel, Field

from plans.status import Status


class Approvals(BaseModel):
    given: int
    required: int


class DecisionOut(BaseModel):
    verdict: Literal["approve", "reject", "request_changes"]
    note: str
    by: str
    at: str


class Change(BaseModel):
    path: str
    planned: Any
    current: Any


class ConflictOut(BaseModel):
    changed: list[Change] | None
    plan_created_at: str | None


class RefusalOut(BaseModel):
    status: int | None
    code: str | None
    detail: str | None


class CommitOut(BaseModel):
    idempotency_key: str
    attempts: int
    result: Any
    problem: RefusalOut | None
    applied_out_of_band: bool
    conflict: ConflictOut | None


class ReplanOut(BaseModel):
    id: int
    cause: str
    mode: str
    status: str
    reason: str
    tries: int
    next_try_at: str | None
    last_error: str


class Links(BaseModel):
    self: str
    review: str
    intent: str


NextAction = Literal[
    "wait", "done", "replan", "replanning", "stop", "investigate", "fix_request", "retry_same"
]


class PlanOut(BaseModel):
    """A plan as its agent sees it (A-6). No token, ever."""

    plan_id: str
    target: str
    operation: str
    status: Status
    revision: int
    intent_id: str
    task_id: str
    expires_at: str
    decide_by: str
    decide_in_ms: int | None
    server_time: str
    input_fingerprint: str
    content_digest: str | None
    actions: list[dict[str, Any]]
    verified: bool
    approvals: Approvals
    decision: DecisionOut | None
    commit: CommitOut
    replaces: str | None
    replaced_by: str | None
    replan: ReplanOut | None
    next_action: NextAction
    links: Links


class AbandonmentOut(PlanOut):
    """The plan, and what came of the wish to end it (A-8)."""

    abandonment: Literal["abandoned", "abandon_noted", "already_closed"]


class PlanPage(BaseModel):
    items: list[PlanOut]
    next: str | None = Field(description="Pass it as `cursor`; null: no more.")


class Asked(BaseModel):
    """In the agent's own words, byte for byte."""

    inputs: str
    summary: str
    reason: str


class Moved(BaseModel):
    """The revision before the current plan, and how the current one differs."""

    replaces: str
    cause: str
    conflict: list[Change] | None
    before: list[dict[str, Any]]
    after: list[dict[str, Any]]


class IntentLinks(BaseModel):
    self: str
    plan: str | None


class IntentOut(BaseModel):
    """What was asked, what is planned, what changed, what people said (A-12)."""

    intent_id: str
    target: str
    operation: str
    task_id: str
    status: Literal[
        "open", "committed", "settled", "rejected", "failed", "abandoned", "parked", "unresolved"
    ]
    closed_reason: str | None
    asked: Asked
    planned: list[dict[str, Any]] | None
    changed: Moved | None
    decision: DecisionOut | None
    plan: PlanOut | None
    replan: ReplanOut | None
    created_at: str
    lives_until: str
    server_time: str
    next_action: NextAction
    links: IntentLinks


class FieldFault(BaseModel):
    pointer: str
    detail: str


class ProblemOut(BaseModel):
    """RFC 9457; branch on `code` or `next_action` (A-16)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    next_action: NextAction
    server_time: str
    errors: list[FieldFault] | None = None
    plan_id: str | None = None
    plan_status: str | None = None
    replaced_by: str | None = None


class WritesOut(BaseModel):
    """The plans that a reported write made stale, and those in flight that it could not (A-10)."""

    stale: list[PlanOut]
    in_flight: list[PlanOut]


class TaskEndOut(BaseModel):
    """What was abandoned with the task, and what the target still decides (A-11)."""

    abandoned: list[PlanOut]
    in_flight: list[PlanOut]


class ClaimOut(ReplanOut):
    """A re-plan in your hands, and the plan that it replaces (A-13)."""

    intent_id: str
    target: str
    operation: str
    task_id: str
    asked: Asked
    plan: PlanOut | None


class EventOut(BaseModel):
    id: int
    at: str
    type: str
    target: str | None
    plan_id: str | None
    intent_id: str | None
    task_id: str | None
    from_: str | None = Field(alias="from")
    to: str | None


class EventPage(BaseModel):
    items: list[EventOut]
    next: str = Field(description="Pass it as `after`: never null, the feed goes on.")

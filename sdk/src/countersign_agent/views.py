"""What the guard tells a program or a model: never a token."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from countersign_agent.documents import Json
from countersign_agent.problems import NextAction
from countersign_agent.results import Action, Change, Decision
from countersign_agent.state import HeldIntent, HeldPlan


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan as a program may see it and pass it on."""

    plan_id: str
    target: str
    operation: str
    status: str
    revision: int
    inputs: str
    input_fingerprint: str
    expires_at: datetime
    actions: tuple[Action, ...]
    covers: tuple[str, ...] | None
    idempotency_key: str
    review_url: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is true now. Branch on `next_action`; `status` says why.

    `status` is a status of the plan, or `planned` (only a dry run was made), `settled` (it was
    true already), `planning` (the server has no plan yet).
    """

    status: str
    next_action: NextAction
    plan: PlanView | None = None
    """The plan that this is about: the latest of its intent, unless `successor` is."""
    result: Json = None
    """What the target says that it did, once it is committed."""
    replayed: bool = False
    """Whether the target gave a stored answer: it was applied by an earlier attempt."""
    changed: tuple[Change, ...] | None = None
    """What is not as it was planned from."""
    successor: PlanView | None = None
    """The plan that was made in this one's place; nothing of it was sent."""
    decision: Decision | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """What a reported write did to the plans of the task."""

    dirty: tuple[str, ...] = ()
    """Plan IDs here that will be planned again before they are sent."""
    stale: tuple[str, ...] = ()
    """Plan IDs at the server that people cannot approve any more."""
    in_flight: tuple[str, ...] = ()
    """Plan IDs that a commit was on its way for."""
    reported: bool = True
    """False: the server did not answer; it is told before anything else is asked of it."""


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """What the end of a task left behind. Every token is gone."""

    abandoned: tuple[str, ...] = ()
    in_flight: tuple[str, ...] = ()
    """The server is committing them: the outcome is the target's to tell."""
    unresolved: tuple[str, ...] = ()
    """Commits of ours whose outcome is not known: a person must look at the target."""
    recorded: bool = field(default=True)
    """Whether the server, if there is one, knows of the end."""


def plan_view(intent: HeldIntent, plan: HeldPlan) -> PlanView:
    """A held plan without its secrets."""
    server = plan.server
    return PlanView(
        plan_id=plan.plan_id,
        target=intent.target,
        operation=intent.operation,
        status=server.status if server else plan.status,
        revision=server.revision if server else intent.plans.index(plan) + 1,
        inputs=intent.inputs.decode(),
        input_fingerprint=plan.fingerprint,
        expires_at=plan.expires_at,
        actions=plan.actions,
        covers=plan.covers,
        idempotency_key=plan.key,
        review_url=server.links.review if server else None,
    )


def reviewed_outcome(intent: HeldIntent, plan: HeldPlan) -> Outcome:
    """What the server told last about a plan that was handed over."""
    server, view = plan.server, plan_view(intent, plan)
    if server is None:
        return Outcome(plan.status, "retry_same", view)
    conflict, problem = server.commit.conflict, server.commit.problem
    note = server.decision.note if server.decision else ""
    # Done without a commit: what was wanted was true already.
    settled = server.next_action == "done" and server.status != "committed"
    return Outcome(
        status="settled" if settled else server.status,
        next_action=server.next_action,
        plan=view,
        result=server.commit.result,
        changed=conflict.changed if conflict else None,
        decision=server.decision,
        reason=note or (problem.detail or "" if problem else ""),
    )


def direct_outcome(intent: HeldIntent, plan: HeldPlan, replayed: bool = False) -> Outcome:
    """What is known about a plan that this process commits itself."""
    return Outcome(
        status=plan.status,
        next_action=_NEXT.get(plan.status, "replan"),
        plan=plan_view(intent, plan),
        result=plan.result,
        replayed=replayed,
        changed=plan.changed,
        reason=plan.reason,
    )


def told(intent: HeldIntent, plan: HeldPlan) -> Outcome:
    """What is known of a plan, whichever way it went."""
    return reviewed_outcome(intent, plan) if plan.server else direct_outcome(intent, plan)


_NEXT: dict[str, NextAction] = {
    "planned": "commit",
    "committing": "retry_same",
    "unknown": "retry_same",
    "unresolved": "investigate",
    "committed": "done",
    "failed": "stop",
    "abandoned": "stop",
}

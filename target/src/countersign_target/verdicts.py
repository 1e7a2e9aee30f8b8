"""What a commit hears of a plan that is over, and how a plan comes to its end."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from countersign_target.canonical import jcs, plain, rfc3339
from countersign_target.exchanges import Answer
from countersign_target.operations import Operation
from countersign_target.planning import draft
from countersign_target.plans import (
    Applied,
    NotApplied,
    PartlyApplied,
    Plan,
    State,
    Status,
    differences,
    origins,
)
from countersign_target.problems import Change, Conflict, Problem
from countersign_target.stores import Transaction

EXPIRED: Final = "The plan expired. Make a new dry run."


def moved(operation: Operation, plan: Plan, transaction: Transaction | None) -> list[Change]:
    """What is not as it was planned from, by running the owner's `plan` again.

    It may refuse now (nothing is left to do, the object is gone): then what it had covered until
    then is compared, and where that is the same its words are the reason. A Problem of 500 or
    more goes through: nothing was found out.
    """
    state = State(transaction, committing=True)
    try:
        made = draft(operation, plan.inputs, state)
    except Problem as problem:
        if problem.status >= 500:
            raise
        changes = differences(plan.state, state.covered, whole=False)
        return changes or [Change("plan", "possible", problem.code)]
    changes = differences(plan.state, made.state)
    # What an owner forgot to cover, an action's origin may still tell.
    return changes or differences(origins(plan.actions), origins(made.actions))


def conflict(plan: Plan, changes: list[Change], detail: str = "") -> Problem:
    """409 that names what moved; never nothing, for a bare 409 proves nothing (T-7)."""
    changes = changes or [Change("state", plan.input_fingerprint, None)]
    return Problem(
        409,
        "state-changed",
        detail or Conflict().detail,
        plan_id=plan.plan_id,
        changed=[plain(change.body()) for change in changes],
        plan_created_at=rfc3339(plan.created_at),
    )


def expired(plan: Plan) -> Problem:
    """410 of this plan."""
    return Problem(410, "expired", EXPIRED, plan_id=plan.plan_id)


def repeat(plan: Plan, source: str) -> Answer | None:
    """What every further commit of a plan that is over hears; None while it is not.

    A Problem is raised where the answer is nothing to keep under the caller's key.
    """
    match plan.status:
        case Status.APPLIED:
            raise Problem(409, "plan-already-applied", "Applied already, with another key.")
        case Status.PARTLY_APPLIED:
            raise Problem(409, "partly-applied", "Some of it was applied: a person must look.")
        case Status.EXPIRED:
            return Answer.refusing(expired(plan), source)
        case Status.NOT_APPLIED:
            return Answer.of(plan.outcome, plan.outcome["status"])
    return None


def end(
    plan: Plan, outcome: Applied | NotApplied | PartlyApplied, now: datetime, source: str
) -> tuple[Plan, Answer]:
    """The plan with its end, and the answer that is kept under the key."""
    match outcome:
        case Applied(result):
            done = plan.settled(Status.APPLIED, now, result)
            return done, Answer.of(applied_body(done))
        case NotApplied(problem):
            status = Status.EXPIRED if problem.status == 410 else Status.NOT_APPLIED
            answer = Answer.refusing(problem, source)
            return plan.settled(status, now, problem.body(source)), answer
        case PartlyApplied(detail):
            problem = Problem(409, "partly-applied", detail)
            answer = Answer.refusing(problem, source)
            return plan.settled(Status.PARTLY_APPLIED, now, problem.body(source)), answer


def applied(found: object) -> Applied:
    """What `apply` returned, as JSON that every reader agrees on; TypeError or ValueError."""
    if not isinstance(found, dict):
        raise TypeError("apply() returns its result as a dict, or raises a Problem")
    result = plain(found)
    jcs(result)
    return Applied(result)


def applied_body(plan: Plan) -> dict[str, Any]:
    """The one answer that says `applied`."""
    at = {"first_applied_at": rfc3339(plan.settled_at)} if plan.settled_at else {}
    return {"plan_id": plan.plan_id, "status": "applied", "result": plan.outcome, **at}


def negative(problem: Problem, plan: Plan, changes: list[Change]) -> NotApplied:
    """What an exception of `apply` means when it certainly did nothing."""
    if isinstance(problem, Conflict):
        return NotApplied(conflict(plan, problem.changed or changes, problem.detail))
    return NotApplied(problem)

"""The lifecycle of a plan: one table of arrows, and the one function that follows them (S-1).

`transition()` is the only writer of `Plan.status`. Callers hold the row lock
(`Plan.objects.locked`), and the event is stored in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.db import connection

from audit.actions import Action
from audit.actors import Actor
from audit.recording import draft
from audit.writing import Change, FilledIn, insert_and_change
from plans.errors import CommitInFlight, NotDecidable
from plans.hints import hint
from plans.models import Plan
from plans.queueing import cancel_waiting, queue_replan
from plans.status import REPLANNED, TERMINAL, Status

S = Status
# The instant of a transition is its event's, which the database fills in.
_AT: Final = FilledIn("at")


class Verb(StrEnum):
    """What is done to a plan; each leads to exactly one status."""

    VERIFY = "verify"
    ACCEPT_UNVERIFIED = "accept_unverified"
    MISMATCH = "mismatch"
    APPROVE = "approve"
    REJECT = "reject"
    REQUEST_CHANGES = "request_changes"
    WITHDRAW = "withdraw"
    REOPEN = "reopen"
    EXPIRE = "expire"
    MARK_STALE = "mark_stale"
    SUPERSEDE = "supersede"
    ABANDON = "abandon"
    START_ATTEMPT = "start_attempt"
    COMMIT = "commit"
    CONFLICT = "conflict"
    FAIL = "fail"
    LOSE_TRACK = "lose_track"
    GIVE_UP = "give_up"
    CHECKED_APPLIED = "checked_applied"
    CHECKED_NOT_APPLIED = "checked_not_applied"


@dataclass(frozen=True, slots=True)
class Arrow:
    """`unsent_from`: statuses that may be left only while no attempt may have been sent (S-4)."""

    to: Status
    sources: frozenset[Status]
    action: Action
    unsent_from: frozenset[Status] = frozenset()


def _arrow(to: Status, action: Action, *sources: Status, unsent: tuple[Status, ...] = ()) -> Arrow:
    return Arrow(to, frozenset((*sources, *unsent)), action, frozenset(unsent))


A = Action
TRANSITIONS: Final[Mapping[Verb, Arrow]] = {
    Verb.VERIFY: _arrow(S.PENDING, A.PLAN_VERIFIED, S.VERIFYING),
    Verb.ACCEPT_UNVERIFIED: _arrow(S.PENDING, A.PLAN_UNVERIFIED, S.VERIFYING),
    Verb.MISMATCH: _arrow(S.MISMATCHED, A.PLAN_MISMATCHED, S.VERIFYING),
    Verb.APPROVE: _arrow(S.APPROVED, A.PLAN_APPROVED, S.PENDING),
    Verb.REJECT: _arrow(S.REJECTED, A.PLAN_REJECTED, S.PENDING),
    Verb.REQUEST_CHANGES: _arrow(S.CHANGES_REQUESTED, A.PLAN_CHANGES_REQUESTED, S.PENDING),
    Verb.WITHDRAW: _arrow(S.REJECTED, A.PLAN_WITHDRAWN, S.APPROVED, unsent=(S.COMMITTING,)),
    Verb.REOPEN: _arrow(S.PENDING, A.PLAN_REOPENED, S.APPROVED, unsent=(S.COMMITTING,)),
    Verb.EXPIRE: _arrow(
        S.EXPIRED, A.PLAN_EXPIRED, S.VERIFYING, S.PENDING, S.APPROVED, S.COMMITTING, S.UNKNOWN
    ),
    Verb.MARK_STALE: _arrow(
        S.STALE, A.PLAN_STALE, S.VERIFYING, S.PENDING, S.APPROVED, unsent=(S.COMMITTING,)
    ),
    Verb.SUPERSEDE: _arrow(S.SUPERSEDED, A.PLAN_SUPERSEDED, S.VERIFYING, S.PENDING),
    Verb.ABANDON: _arrow(
        S.ABANDONED, A.PLAN_ABANDONED, S.VERIFYING, S.PENDING, S.APPROVED, unsent=(S.COMMITTING,)
    ),
    Verb.START_ATTEMPT: _arrow(
        S.COMMITTING, A.ATTEMPT_STARTED, S.APPROVED, S.UNKNOWN, S.COMMITTING
    ),
    Verb.COMMIT: _arrow(S.COMMITTED, A.PLAN_COMMITTED, S.COMMITTING, S.UNKNOWN, S.UNRESOLVED),
    Verb.CONFLICT: _arrow(S.CONFLICTED, A.PLAN_CONFLICTED, S.COMMITTING, S.UNKNOWN),
    Verb.FAIL: _arrow(S.FAILED, A.PLAN_FAILED, S.COMMITTING, S.UNKNOWN),
    Verb.LOSE_TRACK: _arrow(S.UNKNOWN, A.PLAN_UNKNOWN, S.COMMITTING),
    Verb.GIVE_UP: _arrow(S.UNRESOLVED, A.PLAN_UNRESOLVED, S.UNKNOWN),
    Verb.CHECKED_APPLIED: _arrow(S.COMMITTED, A.PLAN_CHECKED_APPLIED, S.UNRESOLVED),
    Verb.CHECKED_NOT_APPLIED: _arrow(S.FAILED, A.PLAN_CHECKED_NOT_APPLIED, S.UNRESOLVED),
}


def allowed(plan: Plan, verb: Verb) -> bool:
    """Whether the table has this arrow from the plan's status (S-4 included)."""
    arrow = TRANSITIONS[verb]
    if plan.status not in arrow.sources:
        return False
    return plan.status not in arrow.unsent_from or not plan.may_have_been_sent()


def transition(
    plan: Plan,
    verb: Verb,
    *,
    actor: Actor,
    details: Mapping[str, Any] | None = None,
    replan_reason: str = "",
    **changes: Any,
) -> Plan:
    """Follow one arrow: guarded write, token's end, re-plan row and event in one transaction.

    `changes` are further columns of the plan written by the same UPDATE. Raises
    NotDecidable (409) when the table has no such arrow from here, CommitInFlight (409)
    when an attempt may have been sent, RuntimeError outside a transaction.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("a transition needs the transaction that holds the row lock")
    arrow, source = TRANSITIONS[verb], plan.status
    _refuse_missing_arrow(plan, arrow)
    event = draft(
        arrow.action, actor, plan.subject(), details, from_status=source, to_status=arrow.to
    )
    changes |= {"status": arrow.to, "status_at": _AT, **_upkeep(arrow.to)}
    insert_and_change(event, Change(Plan, plan.pk, {"status": source}, changes))
    for name, value in changes.items():
        setattr(plan, name, event.at if value is _AT else value)
    hint()
    if arrow.to in REPLANNED:
        queue_replan(plan, actor, replan_reason)
    elif arrow.to == Status.REJECTED:
        cancel_waiting(plan, actor, reason="the plan was rejected")
    return plan


def _refuse_missing_arrow(plan: Plan, arrow: Arrow) -> None:
    barred = plan.status not in arrow.sources
    if not barred and plan.status not in arrow.unsent_from:
        return
    sent = plan.may_have_been_sent()
    if barred or sent:
        refusal = CommitInFlight if sent else NotDecidable
        raise refusal(plan_id=plan.plan_id, plan_status=plan.status)


def _upkeep(to: Status) -> dict[str, Any]:
    """What every arrival at a status brings with it."""
    if to in TERMINAL:
        return {
            "token": None,
            "commit_body": None,
            "next_attempt_at": None,
            "next_read_at": None,
            "verify_at": None,
            "closed_at": _AT,
        }
    if to == Status.UNRESOLVED:
        return {"next_attempt_at": None, "next_read_at": None}
    return {}

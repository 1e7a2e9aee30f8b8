"""Unknown → read by plan ID → truth, or unresolved and a person (T-8 … T-10)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet

from audit import actors
from audit.actions import Action
from audit.actors import Actor
from audit.failpoints import failpoint
from audit.models import StatementTimestamp
from audit.recording import record
from plans import errors, timestamps
from plans.clock import clock
from plans.exchanges import Answer, Exchange
from plans.lifecycle import Verb, transition
from plans.models import Plan
from plans.notes import is_unfit
from plans.outcomes import Kind, Outcome, Reading, ReadKind, settle_after_read
from plans.reading import READ_EVERY, following_read, judge_reading, plan_secrets, read_plan
from plans.recording import lose_open_attempt, settle
from plans.retrying import retried
from plans.sending import unknown_deadline
from plans.status import Status

WHILE_IN_PROGRESS: Final = timedelta(seconds=1)


def resolve(pk: int) -> None:
    """One read of an unknown plan's state, if one is due, and what it proves (T-8)."""
    plan = _claim_read(pk)
    if plan is None:
        return
    if not plan.target.reads_back:
        return
    failpoint("read.claimed", pk)
    exchange = read_plan(plan)
    failpoint("read.answered", pk)
    with transaction.atomic():
        plan = Plan.objects.locked(pk)
        now = clock()
        reading = judge_reading(plan, exchange, now)
        _remember(plan, reading, exchange, now)
        resent = plan.status == Status.COMMITTING and reading.kind is ReadKind.APPLIED
        if resent:
            # A resend is on its way; an earlier attempt had been applied (T-12).
            lose_open_attempt(plan, "settled-by-reading", now)
        if resent or plan.status == Status.UNKNOWN:
            _act(plan, settle_after_read(reading, None), now)
        failpoint("read.inside", pk)


def _claim_read(pk: int) -> Plan | None:
    """Take the next read by moving its mark; past T-10's deadline the plan is unresolved."""
    with transaction.atomic():
        plan = Plan.objects.locked(pk)
        now = clock()
        if plan.status != Status.UNKNOWN or not plan.next_read_at or plan.next_read_at > now:
            return None
        if now >= unknown_deadline(plan, now):
            reason = "no trustworthy answer before the deadline"
            transition(plan, Verb.GIVE_UP, actor=actors.CLOCK, details={"reason": reason})
            return None
        Plan.objects.filter(pk=pk).update(next_read_at=following_read(plan, now))
        return plan


def _remember(plan: Plan, reading: Reading, exchange: Exchange, now: datetime) -> None:
    """What the target said last, for the page; an event only when the word is a new one."""
    status = exchange.status if isinstance(exchange, Answer) else None
    before = (plan.last_reading or {}).get("kind")
    kept = {"at": timestamps.rfc3339(now), "kind": reading.kind.value, "reason": reading.reason}
    Plan.objects.filter(pk=plan.pk).update(last_reading={**kept, "http_status": status})
    if before != reading.kind.value:
        details = {"kind": reading.kind.value, "http_status": status}
        record(Action.STATE_READ, actors.COMMITTER, plan.subject(), details)


def _act(plan: Plan, outcome: Outcome, now: datetime) -> None:
    if outcome.kind is Kind.UNKNOWN:
        if not outcome.may_resend:
            _wait_for_the_target(plan, now)
        return
    if outcome.kind is Kind.UNRESOLVED:
        details = {"reason": outcome.reason}
        transition(plan, Verb.GIVE_UP, actor=actors.COMMITTER, details=details)
        return
    settle(plan, outcome, secrets=plan_secrets(plan), now=now)


def _wait_for_the_target(plan: Plan, now: datetime) -> None:
    """It is at work on the plan: look again soon, and send nothing before it has been looked at."""
    changes = {"next_read_at": min(now + WHILE_IN_PROGRESS, unknown_deadline(plan, now))}
    if plan.next_attempt_at is not None:
        changes["next_attempt_at"] = max(plan.next_attempt_at, now + READ_EVERY)
    Plan.objects.filter(pk=plan.pk).update(**changes)


def due() -> QuerySet[Plan, int]:
    """Plans whose state is to be read now; the sweep asks this."""
    rows = Plan.objects.filter(next_read_at__lte=StatementTimestamp())
    return rows.order_by("next_read_at").values_list("pk", flat=True)[:200]


def read_now(pk: int) -> Reading | None:
    """A person wants to see what the target says of an unresolved plan; it moves nothing."""
    plan = Plan.objects.named(pk)
    if not plan.target.reads_back:
        return None
    exchange = read_plan(plan)
    with transaction.atomic():
        plan = Plan.objects.locked(pk)
        now = clock()
        reading = judge_reading(plan, exchange, now)
        _remember(plan, reading, exchange, now)
    return reading


@retried
def checked(pk: int, *, applied: bool, note: str, actor: Actor) -> Plan:
    """A person looked at the target and says what happened (T-10). Raises Problems (422, 409)."""
    note = note.strip()
    if not note:
        raise errors.NoteRequired(pointer="/note")
    if is_unfit(note):
        raise errors.InvalidNote(pointer="/note")
    with transaction.atomic():
        plan = Plan.objects.locked(pk)
        if plan.status != Status.UNRESOLVED:
            raise errors.NotUnresolved(plan_id=plan.plan_id, plan_status=plan.status)
        verb = Verb.CHECKED_APPLIED if applied else Verb.CHECKED_NOT_APPLIED
        changes: dict[str, Any] = {"stales_others": True} if applied else {}
        return transition(plan, verb, actor=actor, details={"note": note}, **changes)

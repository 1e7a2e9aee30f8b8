"""Writing an outcome down: compare-and-set on (plan, attempt, lease), never lost (T-12)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import InterfaceError, InternalError, OperationalError, connection, transaction
from jsonschema import Draft202012Validator

from audit import actors
from audit.actions import Action
from audit.failpoints import failpoint
from audit.recording import record
from plans import custody, timestamps
from plans.clock import clock
from plans.errors import Problem
from plans.exchanges import Answer, Exchange, NoAnswer
from plans.health import TOLERATED_SKEW
from plans.lifecycle import Verb, allowed, transition
from plans.models import Attempt, Operation, Plan, Target
from plans.outcomes import Kind, Outcome, settle_after_read
from plans.reading import following_read, judge_reading, plan_secrets
from plans.sending import next_resend, next_unsent, while_it_may_be_sent
from plans.status import Status

log = structlog.get_logger(__name__)

RETRY_WRITE_SECONDS: Final = 30.0
SHOWN_ANSWER: Final = 8_192
SHOWN_HEADERS: Final = ("content-type", "date", "retry-after", "idempotent-replayed", "location")


def result_check(operation: Operation) -> Callable[[Any], bool]:
    """Whether a 2xx holds the operation's result; a miss makes it unknown (T-6)."""
    if operation.result_schema is None:
        return lambda _: True
    return Draft202012Validator(operation.result_schema).is_valid


def close_attempt(
    attempt: Attempt,
    outcome: Outcome,
    exchange: Exchange | None,
    confirmation: Exchange | None = None,
) -> Kind:
    """Store the outcome of one attempt and return it; an answer in hand is tried for 30 s.

    `confirmation`: the read that a first refusal has to be joined with (T-7, T-12, FM-32).
    """
    give_up = time.monotonic() + RETRY_WRITE_SECONDS
    while True:
        try:
            with transaction.atomic():
                return _close(attempt, outcome, exchange, confirmation)
        except (OperationalError, InterfaceError, InternalError):
            connection.close()
            if time.monotonic() > give_up:
                raise
            time.sleep(0.5)


def _close(
    attempt: Attempt, outcome: Outcome, exchange: Exchange | None, confirmation: Exchange | None
) -> Kind:
    plan = Plan.objects.locked(attempt.plan_id)
    now = clock()
    secrets = plan_secrets(plan)
    if confirmation is not None:
        outcome = settle_after_read(judge_reading(plan, confirmation, now), outcome)
    closed = Attempt.objects.filter(
        plan=plan, number=attempt.number, lease=attempt.lease, outcome=Attempt.Outcome.OPEN
    ).update(**_as_answered(outcome, exchange, secrets, now))
    details = _in_words(attempt, outcome, exchange)
    log.info("attempt.answered", plan_id=plan.plan_id, late=not closed, **details)
    if not closed:
        _late(plan, outcome, details, secrets, now)
        return outcome.kind
    record(Action.ATTEMPT_CLOSED, actors.COMMITTER, plan.subject(), details)
    _warn(plan, outcome.alarm, clock_alarm(exchange))
    settle(plan, outcome, secrets=secrets, now=now)
    failpoint("result.inside", plan.pk)
    return outcome.kind


def _in_words(attempt: Attempt, outcome: Outcome, exchange: Exchange | None) -> dict[str, Any]:
    """The attempt's end as its event tells it."""
    return {
        "number": attempt.number,
        "outcome": outcome.kind.value,
        "http_status": exchange.status if isinstance(exchange, Answer) else None,
        "reason": outcome.reason,
        "elapsed_ms": _elapsed(exchange),
    }


def _warn(plan: Plan, *alarms: str | None) -> None:
    """The target behaved against the rules; an operator wants to know."""
    for alarm in filter(None, alarms):
        record(Action.TARGET_ALARM, actors.COMMITTER, plan.subject(), {"alarm": alarm})


def clock_alarm(exchange: Exchange | None) -> str | None:
    """C-2: beyond this skew the target's clock is a warning; it never moves a window."""
    skew = exchange.date_skew_seconds if isinstance(exchange, Answer) else None
    return "clock-skew" if skew is not None and abs(skew) > TOLERATED_SKEW else None


def _as_answered(
    outcome: Outcome, exchange: Exchange | None, secrets: list[str], now: datetime
) -> dict[str, Any]:
    kind = Kind.UNKNOWN if outcome.kind is Kind.UNRESOLVED else outcome.kind
    columns: dict[str, Any] = {
        "outcome": kind.value,
        "reason": outcome.reason,
        "closed_at": now,
        "elapsed_ms": _elapsed(exchange),
        "replayed": outcome.replayed,
    }
    if isinstance(exchange, Answer):
        text = exchange.body[: SHOWN_ANSWER * 4].decode("utf-8", "replace").replace("\x00", "␀")
        kept = {name: exchange.headers[name] for name in SHOWN_HEADERS if name in exchange.headers}
        columns |= {
            "http_status": exchange.status,
            "answer": custody.mask(text, secrets)[:SHOWN_ANSWER],
            "answer_headers": custody.mask(dict(kept), secrets),
        }
    return columns


def _elapsed(exchange: Exchange | None) -> float | None:
    return round(exchange.elapsed_ms, 1) if isinstance(exchange, Answer | NoAnswer) else None


def _late(
    plan: Plan, outcome: Outcome, details: dict[str, Any], secrets: list[str], now: datetime
) -> None:
    """T-12: a lapsed attempt's late `applied` still commits; a late no is only recorded."""
    record(Action.ATTEMPT_LATE_ANSWER, actors.COMMITTER, plan.subject(), details)
    if outcome.kind is not Kind.APPLIED or plan.status == Status.COMMITTED:
        return
    if allowed(plan, Verb.COMMIT):
        lose_open_attempt(plan, "settled-by-earlier-attempt", now)
        settle(plan, outcome, secrets=secrets, now=now)
    else:
        # It was closed as not applied, by the target's final word or by a person's.
        _warn(plan, "applied-after-it-was-closed")


def lose_open_attempt(plan: Plan, reason: str, now: datetime) -> None:
    """The plan's truth is known while an attempt is out: its own answer can only be late."""
    plan.attempts.filter(outcome=Attempt.Outcome.OPEN).update(
        outcome=Attempt.Outcome.UNKNOWN, reason=reason, closed_at=now
    )


def lose_lapsed(plan: Plan, attempts: Sequence[Attempt], now: datetime) -> None:
    """A lease ran out with no answer written: the attempt is unknown from here (FM-22)."""
    last = attempts[-1]
    last.outcome, last.reason, last.closed_at = Attempt.Outcome.UNKNOWN, "lease-lapsed", now
    last.save(update_fields=["outcome", "reason", "closed_at"])
    details = {"number": last.number, "outcome": "unknown", "reason": "lease-lapsed"}
    record(Action.ATTEMPT_CLOSED, actors.COMMITTER, plan.subject(), details)
    settle(plan, Outcome(Kind.UNKNOWN, "lease-lapsed"), secrets=[], now=now)


def settle(plan: Plan, outcome: Outcome, *, secrets: list[str], now: datetime) -> None:
    """Move the plan to what the outcome proves. The caller holds the plan's lock."""
    told_by = actors.target(plan.target_id, plan.target.name)
    problem = custody.mask(outcome.problem, secrets)
    match outcome.kind:
        case Kind.APPLIED:
            _commit(plan, outcome, secrets)
        case Kind.CONFLICTED:
            conflict = custody.mask(_conflict(plan, outcome), secrets)
            details = conflict if isinstance(conflict, dict) else {}
            transition(
                plan,
                Verb.CONFLICT,
                actor=told_by,
                details=details,
                conflict=conflict,
                problem=problem,
            )
        case Kind.EXPIRED:
            details = {"problem": problem}
            transition(plan, Verb.EXPIRE, actor=told_by, details=details, problem=problem)
        case Kind.FAILED:
            transition(
                plan, Verb.FAIL, actor=told_by, details={"problem": problem}, problem=problem
            )
            if outcome.open_circuit:
                open_circuit(plan, outcome, now)
        case Kind.NOT_SENT | Kind.RETRY_LATER:
            _come_back(plan, outcome, problem, now)
        case Kind.UNKNOWN | Kind.UNRESOLVED:
            _lose_track(plan, outcome, problem, now)


def _commit(plan: Plan, outcome: Outcome, secrets: list[str]) -> None:
    out_of_band = outcome.applied_out_of_band or _applied_before_us(plan, outcome)
    transition(
        plan,
        Verb.COMMIT,
        actor=actors.COMMITTER,
        details={"replayed": outcome.replayed, "applied_out_of_band": out_of_band},
        result=custody.mask(outcome.result, secrets),
        problem=None,
        applied_out_of_band=out_of_band,
        stales_others=True,
    )
    _warn(plan, "applied-out-of-band" if out_of_band else None)


def _applied_before_us(plan: Plan, outcome: Outcome) -> bool:
    """FM-47: the target says that it applied the plan before our first attempt left."""
    if outcome.replayed and plan.attempts.maybe_sent().count() == 1:
        # Our only attempt met a stored answer: somebody else has used the key.
        return True
    if outcome.first_applied_at is None or plan.first_sent_at is None:
        return False
    try:
        applied = timestamps.parse_instant(outcome.first_applied_at, "/first_applied_at")
    except Problem:
        return False
    # Two clocks: only a lead beyond the tolerated skew says anything (C-2).
    return applied < plan.first_sent_at - timedelta(seconds=TOLERATED_SKEW)


def _conflict(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    return {
        "changed": outcome.changed,
        "plan_created_at": outcome.plan_created_at or timestamps.rfc3339(plan.plan_created_at),
    }


def _come_back(plan: Plan, outcome: Outcome, problem: Any, now: datetime) -> None:
    """This attempt left nothing behind; what earlier ones left stays unknown."""
    attempts = list(plan.attempts.all())
    if any(a.outcome == Attempt.Outcome.UNKNOWN for a in attempts):
        _lose_track(plan, outcome, problem, now)
        return
    due = while_it_may_be_sent(plan, next_unsent(attempts, now, outcome.retry_after))
    Plan.objects.filter(pk=plan.pk).update(next_attempt_at=due, problem=problem)


def _lose_track(plan: Plan, outcome: Outcome, problem: Any, now: datetime) -> None:
    """No trustworthy answer: the same key again on schedule, and the plan's state by its ID."""
    attempts = list(plan.attempts.all())
    plan.unknown_since = plan.unknown_since or now
    resend = _resend_at(plan, attempts, outcome, now)
    # A complete answer that proves nothing is a reason to read at once; silence is not.
    at_once = attempts[-1].http_status is not None or resend is None
    changes = {
        "unknown_since": plan.unknown_since,
        "next_attempt_at": resend,
        "next_read_at": now if at_once else following_read(plan, now),
        "problem": problem,
    }
    details = {"reason": outcome.reason, "next_attempt_at": str(resend or "")}
    plan = transition(plan, Verb.LOSE_TRACK, actor=actors.COMMITTER, details=details, **changes)
    if outcome.kind is Kind.UNRESOLVED:
        transition(plan, Verb.GIVE_UP, actor=actors.COMMITTER, details={"reason": outcome.reason})


def _resend_at(
    plan: Plan, attempts: Sequence[Attempt], outcome: Outcome, now: datetime
) -> datetime | None:
    """When the same key is sent again; None: reads only from here (T-9, T-13)."""
    if outcome.stop_resends:
        return None
    if outcome.kind in (Kind.NOT_SENT, Kind.RETRY_LATER):
        return next_unsent(attempts, now, outcome.retry_after)
    return next_resend(plan, attempts, now, outcome.retry_after)


def open_circuit(plan: Plan, outcome: Outcome, now: datetime) -> None:
    """401/403: no further first sends with this credential until it is replaced (T-7)."""
    status = (outcome.problem or {}).get("status")
    reason = f"{plan.target.name} answered {status} to a commit"
    opened = Target.objects.filter(pk=plan.target_id, circuit_opened_at=None)
    if opened.update(circuit_opened_at=now, circuit_reason=reason):
        record(Action.CIRCUIT_OPENED, actors.COMMITTER, plan.subject(), {"reason": reason})

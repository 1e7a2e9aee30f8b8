"""What an exchange with a target proves about a plan: the whole of T-5 to T-8 as tables. Pure.

Nothing here reads a clock, a database or a socket. A negative answer is believed only on a list;
whatever is not on a list is UNKNOWN, and an UNKNOWN is resolved by reading the plan's state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from plans.bodies import changed_in, code_of, is_replayed, problem, read_object, text
from plans.exchanges import Answer, Exchange, NoAnswer, NotSent
from plans.pacing import http_date, not_sent_delay, parse_retry_after, retry_delay
from plans.strict_json import JsonObject, JsonValue

__all__ = [
    "Kind",
    "Outcome",
    "ReadKind",
    "Reading",
    "classify",
    "not_sent_delay",
    "parse_retry_after",
    "read_state",
    "retry_delay",
    "settle_after_read",
]

# T-7, row by row. These prove "not applied", unless an earlier attempt of the plan is unknown.
FAILED = frozenset({400, 401, 403, 404, 405, 406, 411, 413, 415, 421, 422, 428, 431, 501, 505})
CREDENTIAL_REFUSED = frozenset({401, 403})
WORLD_MOVED = frozenset({409, 412})  # with `changed`; bare they prove nothing
TOO_LATE = frozenset({410})
COME_BACK = frozenset({429})
# A first answer of these is confirmed by one read: the plan may be applied behind our back.
CONFIRMED_BY_READ = frozenset({409, 410, 412})
# "expired" said by one of these is about a credential, a pace or a broken server, not the plan.
NEVER_ABOUT_EXPIRY = frozenset({401, 403, 408, 425, 429})

SAYS_EXPIRED = frozenset({"expired", "plan-expired"})
SAYS_IN_PROGRESS = "in-progress"
SAYS_KEY_REUSED = "idempotency-key-reused"


class Kind(StrEnum):
    """What is proved about the plan."""

    APPLIED = "applied"
    CONFLICTED = "conflicted"
    EXPIRED = "expired"
    FAILED = "failed"
    NOT_SENT = "not_sent"
    RETRY_LATER = "retry_later"
    UNKNOWN = "unknown"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One verdict, and what the caller has to do about it. The target's values are unmasked.

    `reason` is a short word for logs and pages. `problem` is {status, code, detail}.
    `stop_resends`: for ever, read instead (T-13). `may_resend`: False while the target works on it.
    `read_first`: confirm by one read and `settle_after_read` before it is believed (T-7).
    `alarm`: a word for a warning about the target. `first_applied_at`: as the target wrote it.
    """

    kind: Kind
    reason: str
    result: JsonValue = field(default=None, repr=False)
    changed: list[JsonObject] | None = field(default=None, repr=False)
    plan_created_at: str | None = None
    retry_after: float | None = None
    problem: JsonObject | None = field(default=None, repr=False)
    stop_resends: bool = False
    may_resend: bool = True
    open_circuit: bool = False
    alarm: str | None = None
    read_first: bool = False
    replayed: bool = False
    applied_out_of_band: bool = False
    first_applied_at: str | None = None


def _any_result(_: JsonValue) -> bool:
    return True


def classify(
    exchange: Exchange,
    *,
    plan_id: str,
    earlier_unknown: bool,
    check_result: Callable[[JsonValue], bool] = _any_result,
) -> Outcome:
    """Judge the answer to one commit, or its absence (T-5, T-6, T-7, T-8, T-13).

    `earlier_unknown`: an earlier attempt of this plan may have been applied; then nothing but a
    success is believed. A NOT_SENT says only that this attempt left nothing behind.
    """
    match exchange:
        case NotSent(reason=reason, detail=detail):
            return Outcome(Kind.NOT_SENT, reason, problem=problem(None, reason, detail))
        case NoAnswer(reason=reason, detail=detail):
            return Outcome(Kind.UNKNOWN, reason, problem=problem(None, reason, detail))
        case Answer(status=status) if 200 <= status < 300:
            return _judge_success(exchange, plan_id, check_result)
        case Answer():
            return _judge_refusal(exchange, earlier_unknown)


def _judge_success(
    answer: Answer, plan_id: str, check_result: Callable[[JsonValue], bool]
) -> Outcome:
    """T-6: all of it, or unknown. A 2xx is never a failure and never a success by itself."""
    replayed = is_replayed(answer)
    body = read_object(answer)
    miss = _miss(body, plan_id, check_result)
    if body is None or miss is not None:
        reason = (miss or "not-json") if answer.body else "empty-answer"
        why = problem(answer.status, reason, None)
        # A target may choose to say nothing (204); what it says and we cannot use is a warning.
        alarm = reason if answer.body else None
        return Outcome(Kind.UNKNOWN, reason, problem=why, alarm=alarm, replayed=replayed)
    applied_at = text(body.get("first_applied_at"))
    result = body.get("result")
    return Outcome(Kind.APPLIED, "applied", result, replayed=replayed, first_applied_at=applied_at)


def _miss(
    body: JsonObject | None, plan_id: str, check_result: Callable[[JsonValue], bool]
) -> str | None:
    """T-6, row by row: what a 2xx lacks; None when nothing is missing."""
    if body is None:
        return "not-json"
    if body.get("plan_id") != plan_id:
        return "other-plan"
    if body.get("status") != "applied":
        return "status-not-applied"
    return None if check_result(body.get("result")) else "result-not-valid"


def _judge_refusal(answer: Answer, earlier_unknown: bool) -> Outcome:
    """T-7 on a first attempt, T-8 on a later one: then the same answer proves nothing."""
    body = read_object(answer) or {}
    code, status, changed = code_of(body), answer.status, changed_in(body)
    kind, reason = _refusal(status, code, changed is not None)
    outcome = Outcome(
        kind,
        reason,
        changed=changed if kind is Kind.CONFLICTED else None,
        plan_created_at=text(body.get("plan_created_at")),
        retry_after=_retry_after(answer.headers),
        problem=problem(status, code, body.get("detail") or body.get("title")),
        stop_resends=status >= 500 and is_replayed(answer),
        open_circuit=status in CREDENTIAL_REFUSED,
        alarm=_refusal_alarm(status, code),
        read_first=status in CONFIRMED_BY_READ or kind is Kind.EXPIRED,
        replayed=is_replayed(answer),
    )
    if earlier_unknown:
        return replace(outcome, kind=Kind.UNKNOWN, changed=None, read_first=False)
    return outcome


def _refusal(status: int, code: str | None, has_changed: bool) -> tuple[Kind, str]:
    """T-7, first match wins; `reason` is the target's code where the code decided."""
    about_plan = 400 <= status < 500 and status not in NEVER_ABOUT_EXPIRY
    if status == 409 and code == SAYS_IN_PROGRESS:
        return Kind.UNKNOWN, SAYS_IN_PROGRESS
    if status == 422 and code == SAYS_KEY_REUSED:
        return Kind.UNKNOWN, SAYS_KEY_REUSED
    if status in TOO_LATE or (about_plan and code in SAYS_EXPIRED):
        return Kind.EXPIRED, "expired"
    if status in WORLD_MOVED and has_changed:
        return Kind.CONFLICTED, "changed"
    if status in COME_BACK:
        return Kind.RETRY_LATER, "asked-to-wait"
    if status in FAILED:
        return Kind.FAILED, f"status-{status}"
    return Kind.UNKNOWN, f"status-{status}"


def _refusal_alarm(status: int, code: str | None) -> str | None:
    if status == 422 and code == SAYS_KEY_REUSED:
        return SAYS_KEY_REUSED
    return "redirect-not-followed" if 300 <= status < 400 else None


class ReadKind(StrEnum):
    """What the plan's state, read by its ID, says. The first six are the target's own words."""

    APPLIED = "applied"
    NOT_APPLIED = "not_applied"
    EXPIRED = "expired"
    IN_PROGRESS = "in_progress"
    OPEN = "open"
    PARTLY_APPLIED = "partly_applied"
    UNREADABLE = "unreadable"
    MISSING = "missing"


IN_WORDS = {
    kind.value: kind for kind in ReadKind if kind not in (ReadKind.UNREADABLE, ReadKind.MISSING)
}


@dataclass(frozen=True, slots=True)
class Reading:
    """One answer to a read by plan ID; `plan` is its parsed body, unmasked."""

    kind: ReadKind
    reason: str
    result: JsonValue = field(default=None, repr=False)
    first_applied_at: str | None = None
    plan: JsonObject | None = field(default=None, repr=False)


def read_state(
    exchange: Exchange, *, plan_id: str, consumed_plans_readable: bool, past_expiry: bool
) -> Reading:
    """Judge the answer to `GET plan_path` (T-8).

    A 404 is a final word only from a target that keeps consumed plans readable; from any other
    it is MISSING, which proves as little as UNREADABLE.
    """
    if not isinstance(exchange, Answer):
        return Reading(ReadKind.UNREADABLE, exchange.reason)
    if exchange.status == 404:
        if not consumed_plans_readable:
            return Reading(ReadKind.MISSING, "status-404")
        kind = ReadKind.EXPIRED if past_expiry else ReadKind.NOT_APPLIED
        return Reading(kind, "status-404")
    return _stated(exchange, plan_id)


def _stated(answer: Answer, plan_id: str) -> Reading:
    """The target's own word for the plan, if it is whole, about this plan and one we know."""
    body = read_object(answer)
    if answer.status != 200:
        return Reading(ReadKind.UNREADABLE, f"status-{answer.status}")
    if body is None:
        return Reading(ReadKind.UNREADABLE, "not-json")
    if body.get("plan_id") != plan_id:
        return Reading(ReadKind.UNREADABLE, "other-plan")
    kind = IN_WORDS.get(text(body.get("status")) or "", ReadKind.UNREADABLE)
    if kind is ReadKind.UNREADABLE:
        return Reading(kind, "unknown-status", plan=body)
    applied_at = text(body.get("first_applied_at"))
    return Reading(kind, kind.value, body.get("result"), applied_at, body)


def settle_after_read(reading: Reading, first: Outcome | None) -> Outcome:
    """Join a reading with what it is asked about, into the outcome to act on.

    `first`: the first attempt's own answer, which the read confirms (T-7, `read_first`).
    None: an attempt is unknown and only the reading counts (T-8).
    """
    proved = _proved(reading)
    if first is None:
        return proved
    if reading.kind is ReadKind.APPLIED:
        # We were refused and yet it is applied: somebody else committed this plan.
        return replace(proved, problem=first.problem, applied_out_of_band=True)
    believed = reading.kind in (ReadKind.NOT_APPLIED, ReadKind.EXPIRED, ReadKind.OPEN)
    if believed and first.kind is not Kind.UNKNOWN:
        return replace(first, read_first=False)
    return replace(
        first,
        kind=proved.kind,
        reason=proved.reason,
        changed=None,
        may_resend=proved.may_resend,
        read_first=False,
    )


def _proved(reading: Reading) -> Outcome:
    """T-8, row by row: what a reading proves by itself."""
    match reading.kind:
        case ReadKind.APPLIED:
            applied_at = reading.first_applied_at
            return Outcome(Kind.APPLIED, "read", reading.result, first_applied_at=applied_at)
        case ReadKind.NOT_APPLIED:
            return Outcome(Kind.CONFLICTED, f"read-{reading.reason}")
        case ReadKind.EXPIRED:
            return Outcome(Kind.EXPIRED, f"read-{reading.reason}")
        case ReadKind.PARTLY_APPLIED:
            return Outcome(Kind.UNRESOLVED, "read-partly_applied")
        case ReadKind.IN_PROGRESS:
            return Outcome(Kind.UNKNOWN, "read-in_progress", may_resend=False)
        case ReadKind.OPEN | ReadKind.UNREADABLE | ReadKind.MISSING:
            return Outcome(Kind.UNKNOWN, f"read-{reading.reason}")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The target's own `Date` is "now": no clock of ours, and no skew between the two (C-2)."""
    return parse_retry_after(headers.get("retry-after"), http_date(headers.get("date")))

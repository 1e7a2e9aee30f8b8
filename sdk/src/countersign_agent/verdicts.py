"""What an answer to a commit, or its absence, proves about a plan (T-5 … T-8). Pure.

A negative answer is believed only on a list, and only while no earlier attempt of the plan is
unknown; whatever is not on a list is unknown. Nothing else is possible.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from countersign_agent.documents import Json, NotStrict, frozen, read_object
from countersign_agent.errors import UnexpectedAnswer
from countersign_agent.exchanges import Answer, Exchange, NotSent
from countersign_agent.problems import Problem, read_problem, retry_after
from countersign_agent.results import Change

Kind = Literal["applied", "conflicted", "expired", "failed", "not_sent", "later", "unknown"]

FAILED: Final = frozenset({400, 401, 403, 404, 405, 406, 411, 413, 415, 421, 422, 428, 431})
FAILED_5XX: Final = frozenset({501, 505})
WORLD_MOVED: Final = frozenset({409, 412})
# "expired" said by one of these is about a credential or a pace, not about the plan.
_NEVER_ABOUT_EXPIRY: Final = frozenset({401, 403, 408, 425, 429})
_SAYS_EXPIRED: Final = frozenset({"expired", "plan-expired"})
_PROVES_NOTHING: Final = frozenset({(409, "in-progress"), (422, "idempotency-key-reused")})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is proved. `partly`: applied in part, a person must look; nothing is sent again."""

    kind: Kind
    reason: str
    result: Json = field(default=None, repr=False)
    changed: tuple[Change, ...] | None = None
    problem: Problem | None = None
    pause: float | None = None
    replayed: bool = False
    partly: bool = False
    out_of_band: bool = False

    @property
    def believed_after_a_read(self) -> bool:
        """A first 409, 410 or 412: the plan may have been committed behind our back (T-7)."""
        return self.kind in ("conflicted", "expired")


def judge(exchange: Exchange, plan_id: str, *, earlier_unknown: bool) -> Verdict:
    """The verdict on one commit. After an unknown attempt only a success is believed (T-8)."""
    if isinstance(exchange, NotSent):
        # It says only that this attempt left nothing behind.
        return Verdict("not_sent", exchange.reason)
    if not isinstance(exchange, Answer):
        return Verdict("unknown", exchange.reason)
    if 200 <= exchange.status < 300:
        return _success(exchange, plan_id)
    verdict = _refusal(exchange)
    if earlier_unknown and verdict.kind != "later":
        return replace(verdict, kind="unknown", changed=None)
    return verdict


def _success(answer: Answer, plan_id: str) -> Verdict:
    """T-6: all of it, or unknown. A 2xx is never a failure, and never a success by itself."""
    body = _object(answer)
    if body.get("plan_id") != plan_id or body.get("status") != "applied" or "result" not in body:
        return Verdict("unknown", "incomplete-success")
    replayed = answer.headers.get("idempotent-replayed", "").lower() in ("true", "?1")
    return Verdict("applied", "applied", frozen(body["result"]), replayed=replayed)


def _refusal(answer: Answer) -> Verdict:
    problem, status = read_problem(answer), answer.status
    changed = _changed(_object(answer))
    kind = _kind(status, problem.code, changed is not None)
    return Verdict(
        kind,
        problem.code or f"status-{status}",
        changed=changed if kind == "conflicted" else None,
        problem=problem,
        pause=retry_after(answer),
    )


def _kind(status: int, code: str, moved: bool) -> Kind:
    """T-7; the first row that fits."""
    if (status, code) in _PROVES_NOTHING:
        return "unknown"
    says_expired = 400 <= status < 500 and code in _SAYS_EXPIRED
    if status == 410 or (says_expired and status not in _NEVER_ABOUT_EXPIRY):
        return "expired"
    if status in WORLD_MOVED and moved:
        return "conflicted"
    if status == 429:
        return "later"
    return "failed" if status in FAILED | FAILED_5XX else "unknown"


def read_state(
    exchange: Exchange, plan_id: str, *, readable: bool, past_expiry: bool
) -> Verdict | None:
    """What the plan's state, read by its ID, proves; None: nothing (T-8).

    `readable`: the target keeps consumed plans, so that a 404 is a final word.
    """
    if not isinstance(exchange, Answer):
        return None
    if exchange.status == 404 and readable:
        return Verdict("expired" if past_expiry else "conflicted", "read-404")
    body = _object(exchange)
    if exchange.status != 200 or body.get("plan_id") != plan_id:
        return None
    match body.get("status"):
        case "applied":
            return Verdict("applied", "read-applied", frozen(body.get("result")), replayed=True)
        case "not_applied":
            return Verdict("conflicted", "read-not_applied")
        case "expired":
            return Verdict("expired", "read-expired")
        case "partly_applied":
            return Verdict("unknown", "read-partly_applied", partly=True)
        case "in_progress":
            return Verdict("unknown", "read-in_progress")
    return None


def confirm(first: Verdict, read: Verdict | None, *, open_now: bool) -> Verdict:
    """Join a first refusal with the read that it is confirmed by (T-7)."""
    if read is None:
        return first if open_now else replace(first, kind="unknown", reason="unreadable")
    if read.kind == "applied":
        return replace(read, out_of_band=True)
    if read.kind == "unknown":
        return read
    return first


def says_open(exchange: Exchange, plan_id: str) -> bool:
    """Whether the target says that the plan is still open."""
    if not isinstance(exchange, Answer) or exchange.status != 200:
        return False
    body = _object(exchange)
    return body.get("plan_id") == plan_id and body.get("status") == "open"


def _object(answer: Answer) -> dict[str, Any]:
    try:
        return read_object(answer.body)
    except NotStrict:
        return {}


def _changed(body: dict[str, Any]) -> tuple[Change, ...] | None:
    """The `changed` list, if it names at least one path and nothing else is in it."""
    items = body.get("changed")
    if not isinstance(items, list) or not items:
        return None
    try:
        return tuple(Change.read(each) for each in items)
    except UnexpectedAnswer:
        return None

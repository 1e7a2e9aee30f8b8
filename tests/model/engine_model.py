"""A small explicit-state model of plan x attempts x wire x target, for every order of events.

What the app concludes from an answer is not modelled: the product's own pure functions
(`plans.outcomes`) and its table of arrows (`plans.lifecycle`) are called. Modelled are the target
(one plan, one key, one effect), a wire that delays, repeats nothing and loses anything, a worker
that may die at any point, and two clocks that only ever say "now".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from plans.exchanges import Answer, Exchange, NoAnswer, NotSent
from plans.lifecycle import TRANSITIONS, Verb
from plans.outcomes import Kind, Outcome, Reading, classify, read_state, settle_after_read
from plans.status import TERMINAL, Status

PLAN = "plan_1"
MAX_ATTEMPTS = 3
FINAL = TERMINAL | {Status.UNRESOLVED}


@dataclass(frozen=True, slots=True)
class Attempt:
    """`outcome`: open, or what was written. `wire`: where its request or its answer is now."""

    outcome: str = "open"
    wire: str = "sent"
    answer: str = ""


@dataclass(frozen=True, slots=True)
class World:
    """One state. `target`: open, moved (the next commit is refused), refused or applied."""

    status: Status = Status.APPROVED
    attempts: tuple[Attempt, ...] = ()
    target: str = "open"
    applies: int = 0


@dataclass(frozen=True, slots=True)
class Rules:
    """The product as it is; each switch breaks one rule, to show that the checks bite."""

    # And without the read that confirms: as at a target that has none.
    believe_late_refusals: bool = False
    new_key_on_retry: bool = False
    timeout_is_failure: bool = False
    trust_any_success: bool = False


def answer(code: int, **body: object) -> Answer:
    return Answer(code, {"content-type": "application/json"}, json.dumps(body).encode())


@lru_cache
def exchange_of(kind: str) -> Exchange:
    """What comes over the wire, as the gateway would hand it over."""
    match kind:
        case "applied":
            return answer(200, plan_id=PLAN, status="applied", result={"done": True})
        case "changed":
            changed = [{"path": "x", "planned": 0, "current": 1}]
            return answer(409, changed=changed, plan_created_at="2026-01-01T00:00:00Z")
        case "error":
            return answer(503)
        case "garbage":
            return answer(200, hello="world")
        case "not_sent":
            return NotSent("connect", "refused")
        case _:
            return NoAnswer("timeout", "silence")


def following(world: World, rules: Rules) -> Iterator[World]:
    """Every state that one step of anybody leads to."""
    if world.target == "open":
        yield replace(world, target="moved")
    yield from _sends(world)
    for index, attempt in enumerate(world.attempts):
        yield from _wire(world, index, attempt, rules)
        yield from _app(world, index, attempt, rules)
    if world.status == Status.UNKNOWN:
        yield _concluded(world, proved(word_of(world)))
        yield _moved(world, Verb.GIVE_UP)


def _sends(world: World) -> Iterator[World]:
    """A claim: T-3 for a first send, T-9 for the same key again."""
    unsettled = world.status in (Status.APPROVED, Status.COMMITTING, Status.UNKNOWN)
    idle = all(attempt.outcome != "open" for attempt in world.attempts)
    if unsettled and idle and len(world.attempts) < MAX_ATTEMPTS:
        started = _moved(world, Verb.START_ATTEMPT)
        yield replace(started, attempts=(*world.attempts, Attempt()))
        lost = Attempt(outcome="open", wire="answered", answer="not_sent")
        yield replace(started, attempts=(*world.attempts, lost))
    if world.status == Status.COMMITTING and idle and not _unknown(world):
        # The window closes while nothing that was sent is unknown.
        yield _moved(world, Verb.EXPIRE)


def _wire(world: World, index: int, attempt: Attempt, rules: Rules) -> Iterator[World]:
    """The request arrives, or never does; the answer arrives, changed or not, or never does."""
    if attempt.wire != "sent":
        return
    yield _with(world, index, replace(attempt, wire="lost"))
    for arrived, kind in _arrives(world, index, rules):
        for told in (kind, "silence", "error", "garbage"):
            yield _with(arrived, index, replace(attempt, wire="answered", answer=told))
    for fault in ("error", "garbage"):
        yield _with(world, index, replace(attempt, wire="answered", answer=fault))


def _arrives(world: World, index: int, rules: Rules) -> Iterator[tuple[World, str]]:
    """The target: key, result and effect in one step; a refusal is its final word.

    A target may look at the state before the key: then it refuses what it has applied (FM-14).
    """
    fresh_key = rules.new_key_on_retry and index > 0
    if world.target == "applied" and not fresh_key:
        yield world, "applied"
        yield world, "changed"
    elif world.target in ("open", "applied"):
        yield replace(world, target="applied", applies=world.applies + 1), "applied"
    else:
        yield replace(world, target="refused"), "changed"


def _app(world: World, index: int, attempt: Attempt, rules: Rules) -> Iterator[World]:
    """The answer is written down; or nobody writes it, and the lease lapses."""
    if attempt.outcome == "open":
        yield _recorded(world, index, verdict("silence", False, rules))
    if attempt.wire != "answered":
        return
    earlier = any(a.outcome == "unknown" for a in world.attempts[:index])
    outcome = verdict(attempt.answer, earlier, rules)
    if attempt.outcome == "open":
        if outcome.read_first and not rules.believe_late_refusals:
            outcome = confirmed(attempt.answer, earlier, rules, word_of(world))
        yield _recorded(world, index, outcome)
    elif outcome.kind is Kind.APPLIED and _has_arrow(world, Verb.COMMIT):
        # T-12: late, and still the truth; a late refusal is only recorded.
        yield _concluded(_with(world, index, replace(attempt, wire="read")), outcome)


@lru_cache
def verdict(kind: str, earlier_unknown: bool, rules: Rules) -> Outcome:
    """The product's verdict on an answer, or a mutant's."""
    exchange = exchange_of(kind)
    doubted = earlier_unknown and not rules.believe_late_refusals
    outcome = classify(exchange, plan_id=PLAN, earlier_unknown=doubted)
    if rules.timeout_is_failure and isinstance(exchange, NoAnswer):
        return replace(outcome, kind=Kind.FAILED)
    if rules.trust_any_success and isinstance(exchange, Answer) and exchange.status == 200:
        return replace(outcome, kind=Kind.APPLIED)
    return outcome


@lru_cache
def confirmed(kind: str, earlier_unknown: bool, rules: Rules, word: str) -> Outcome:
    """A first refusal, joined with one read (T-7)."""
    return settle_after_read(reading_of(word), verdict(kind, earlier_unknown, rules))


def _recorded(world: World, index: int, outcome: Outcome) -> World:
    """`plans.recording`: the attempt is closed and the plan moves to what that proves."""
    attempt = world.attempts[index]
    kind = "unknown" if outcome.kind is Kind.UNRESOLVED else outcome.kind.value
    wire = "read" if attempt.wire == "answered" else attempt.wire
    return _concluded(_with(world, index, replace(attempt, outcome=kind, wire=wire)), outcome)


def _concluded(world: World, outcome: Outcome) -> World:
    match outcome.kind:
        case Kind.APPLIED:
            return _moved(_without_open(world), Verb.COMMIT)
        case Kind.CONFLICTED:
            return _moved(world, Verb.CONFLICT)
        case Kind.EXPIRED:
            return _moved(world, Verb.EXPIRE)
        case Kind.FAILED:
            return _moved(world, Verb.FAIL)
        case Kind.UNRESOLVED:
            lost = world if world.status == Status.UNKNOWN else _moved(world, Verb.LOSE_TRACK)
            return _moved(lost, Verb.GIVE_UP)
        case Kind.NOT_SENT | Kind.RETRY_LATER if not _unknown(world):
            return world
        case _:
            if world.status == Status.UNKNOWN:
                return world
            return _moved(world, Verb.LOSE_TRACK)


def word_of(world: World) -> str:
    """The target's answer to a read: a plan that only moved is still open to it."""
    return {"applied": "applied", "refused": "not_applied"}.get(world.target, "open")


@lru_cache
def proved(word: str) -> Outcome:
    """What a read by plan ID proves of an unknown plan (T-8)."""
    return settle_after_read(reading_of(word), None)


@lru_cache
def reading_of(word: str) -> Reading:
    body = answer(200, plan_id=PLAN, status=word, result={"done": True})
    return read_state(body, plan_id=PLAN, consumed_plans_readable=True, past_expiry=False)


def _unknown(world: World) -> bool:
    return any(attempt.outcome == "unknown" for attempt in world.attempts)


def _without_open(world: World) -> World:
    closed = tuple(
        replace(a, outcome="unknown") if a.outcome == "open" else a for a in world.attempts
    )
    return replace(world, attempts=closed)


def _has_arrow(world: World, verb: Verb) -> bool:
    return world.status in TRANSITIONS[verb].sources


def _moved(world: World, verb: Verb) -> World:
    """Along an arrow of the product's table, or not at all."""
    if not _has_arrow(world, verb):
        raise AssertionError(f"the table has no arrow {verb} from {world.status}")
    return replace(world, status=TRANSITIONS[verb].to)


def _with(world: World, index: int, attempt: Attempt) -> World:
    attempts = (*world.attempts[:index], attempt, *world.attempts[index + 1 :])
    return replace(world, attempts=attempts)

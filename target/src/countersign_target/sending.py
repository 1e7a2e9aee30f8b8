"""The commit of an effect outside the store: the key is stored before anything is sent."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from datetime import timedelta

from countersign_target.committing import Order, in_progress, locked, replay
from countersign_target.exchanges import Answer, Request
from countersign_target.operations import Operation, Outside
from countersign_target.plans import (
    Applied,
    NotApplied,
    Outcome,
    PartlyApplied,
    Plan,
    SendAgain,
    Status,
    Unknown,
)
from countersign_target.problems import Change, Conflict, Later, Problem
from countersign_target.stores import Kept, Store, Transaction
from countersign_target.verdicts import (
    applied,
    applied_body,
    conflict,
    end,
    expired,
    moved,
    negative,
    repeat,
)

LOG = logging.getLogger("countersign_target")


def commit_outside(
    store: Store, operation: Operation, outside: Outside, request: Request, source: str
) -> Answer:
    """Store key and `sending`; send; store what came of it. Three steps, two transactions.

    Killed in between, the plan stays `sending`: its lease lapses, and the next commit with the
    same key, or a read-back, asks the owner's `look`. Another key never gets to send.
    """
    order = Order.of(operation, request)
    with store.transaction() as transaction:
        if answer := replay(transaction, order):
            return answer
        found = locked(transaction, operation, order)
        begun = _begin(transaction, found, order, outside, source)
        if isinstance(begun, Answer):
            transaction.keep(Kept(order.key, order.sha256, begun.status, begun.text), found.now)
            return begun
        transaction.keep(Kept(order.key, order.sha256, None, ""), found.now)
    try:
        outcome = _sent(operation, outside, begun)
    except Later as later:
        _release(store, begun)
        raise later from None
    return _record(store, begun, outcome, source)


def _begin(
    transaction: Transaction, plan: Plan, order: Order, outside: Outside, source: str
) -> Plan | Answer:
    """The plan as claimed by this try, or the answer that needs none."""
    if plan.status is Status.OPEN and plan.late:
        done, answer = end(plan, NotApplied(expired(plan)), plan.now, source)
        transaction.update(replace(done, idempotency_key=order.key))
        return answer
    if heard := repeat(plan, source):
        return heard
    now = plan.now
    if plan.status is Status.SENDING and (
        plan.idempotency_key != order.key or (plan.sending_until and now < plan.sending_until)
    ):
        raise in_progress()
    begun = replace(
        plan,
        status=Status.SENDING,
        idempotency_key=order.key,
        sends=plan.sends + 1,
        sending_until=now + timedelta(seconds=outside.lease_seconds),
        now=now,
    )
    transaction.update(begun)
    return begun


def _sent(operation: Operation, outside: Outside, plan: Plan) -> Outcome:
    """What came of this try. After an earlier one that nobody knows the end of, `look` first."""
    again = plan.sends > 1
    if again:
        found = looked(outside, plan)
        if not isinstance(found, SendAgain):
            return found
        if plan.late:
            return Unknown("It was not seen to be applied, and it is too late to send it again.")
    try:
        outcome = _first(operation, plan)
    except Later:
        raise
    except Exception:
        LOG.exception("apply of %s: its outcome is unknown", plan.plan_id)
        return Unknown()
    # The refusal may be about the very change that the earlier try made (T-8's rule, inside).
    return Unknown() if again and isinstance(outcome, NotApplied) else outcome


def _first(operation: Operation, plan: Plan) -> Outcome:
    begun = time.monotonic()
    # Sent again, the state is no news: the earlier try may be what moved it.
    if plan.sends <= 1 and (changes := _changes(operation, plan)):
        return NotApplied(conflict(plan, changes))
    if plan.now + timedelta(seconds=time.monotonic() - begun) >= plan.expires_at:
        return NotApplied(expired(plan))  # the look took too long, and nothing was sent
    try:
        found = operation.apply(plan)
    except Problem as problem:
        if problem.status >= 500:
            raise
        return negative(problem, plan, _named(operation, plan, problem))
    return _checked(found)


def _changes(operation: Operation, plan: Plan) -> list[Change]:
    """What moved; while the other system cannot be read, nothing is sent."""
    try:
        return moved(operation, plan, None)
    except Exception as error:
        # An owner's Problem is in words for people; another exception may repeat what it was given.
        words = error.detail if isinstance(error, Problem) else type(error).__name__
        LOG.warning("state of %s could not be read: %s", plan.plan_id, words)
        raise Later("The state could not be read, so nothing was sent.") from error


def _named(operation: Operation, plan: Plan, problem: Problem) -> list[Change]:
    """What moved, for a refusal that does not say it; the refusal stands without it too."""
    if not isinstance(problem, Conflict) or problem.changed:
        return []
    try:
        return _changes(operation, plan)
    except Later:
        return []


def looked(outside: Outside, plan: Plan) -> Outcome:
    """The owner's `look`; a fault in it tells nothing."""
    try:
        return _checked(outside.look(plan))
    except Exception:
        LOG.exception("look at %s", plan.plan_id)
        return Unknown()


def _checked(found: object) -> Outcome:
    """A result in a dict is an effect that is there; anything but an outcome is a TypeError."""
    if isinstance(found, NotApplied | PartlyApplied | SendAgain | Unknown):
        return found
    return applied(found.result if isinstance(found, Applied) else found)


def _release(store: Store, plan: Plan) -> None:
    """Nothing was sent: open again, unless an earlier try may have been."""
    with store.transaction() as transaction:
        now = transaction.lock(plan.token_sha256)
        if now is None or (now.status, now.sends) != (Status.SENDING, plan.sends):
            return
        if plan.sends > 1:
            transaction.update(replace(now, sending_until=now.now))
            return
        fresh = replace(now, status=Status.OPEN, sends=0, idempotency_key=None, sending_until=None)
        transaction.update(fresh)
        transaction.drop_key(plan.idempotency_key or "")


def _record(store: Store, plan: Plan, outcome: Outcome, source: str) -> Answer:
    """Store the end of a try and answer; only an effect that is there may come late."""
    with store.transaction() as transaction:
        now = transaction.lock(plan.token_sha256)
        assert now is not None
        mine = now.status is Status.SENDING and now.sends == plan.sends
        if isinstance(outcome, SendAgain | Unknown):
            if mine:
                transaction.update(replace(now, sending_until=now.now))
            detail = outcome.detail if isinstance(outcome, Unknown) else Unknown().detail
            return Answer.refusing(Problem(500, "outcome-unknown", detail), source)
        if isinstance(outcome, Applied) and now.status is Status.APPLIED:
            return Answer.of(applied_body(now))  # looked at, and found, in the meantime
        if not mine and not (now.status is Status.SENDING and isinstance(outcome, Applied)):
            return Answer.refusing(in_progress(), source)
        return settle_outside(transaction, now, outcome, source)


def settle_outside(
    transaction: Transaction, plan: Plan, outcome: Applied | NotApplied | PartlyApplied, source: str
) -> Answer:
    """Plan and key get their end together."""
    done, answer = end(plan, outcome, plan.now, source)
    transaction.update(done)
    kept = transaction.kept(done.idempotency_key or "")
    if kept is not None and not isinstance(outcome, PartlyApplied):
        transaction.keep(replace(kept, status=answer.status, text=answer.text), plan.now)
    return answer


def resolve(store: Store, outside: Outside, plan: Plan, source: str) -> None:
    """A read-back of a plan whose last try lapsed: store what `look` finds, if it finds an end."""
    outcome = looked(outside, plan)
    if isinstance(outcome, SendAgain | Unknown):
        return
    with store.transaction() as transaction:
        now = transaction.lock(plan.token_sha256)
        if now and (now.status, now.sends) == (Status.SENDING, plan.sends):
            settle_outside(transaction, now, outcome, source)

"""The commit: key, result and effect in one transaction."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from typing import Final

from countersign_target.canonical import token_hash
from countersign_target.exchanges import Answer, Request
from countersign_target.operations import Operation
from countersign_target.plans import Applied, NotApplied, Plan
from countersign_target.problems import Change, Conflict, Problem, not_allowed
from countersign_target.stores import Kept, Store, Transaction
from countersign_target.strict_json import parse_object, unknown_members
from countersign_target.verdicts import applied, conflict, end, expired, moved, negative, repeat

KEY: Final = re.compile(r'"?([\x21\x23-\x5b\x5d-\x7e]{1,255})"?', re.ASCII)
MEMBERS: Final = ("plan_token", "input_fingerprint")


@dataclass(frozen=True)
class Order:
    """A commit as it was asked for."""

    key: str
    sha256: bytes
    token_sha256: bytes = field(repr=False)
    fingerprint: str

    @classmethod
    def of(cls, operation: Operation, request: Request) -> Order:
        """400 without a usable key, 422 for another body than token and fingerprint."""
        # Bare, or as a structured field's quoted string.
        key = KEY.fullmatch(request.header("Idempotency-Key") or "")
        if key is None:
            raise Problem(400, "idempotency-key-missing", "A commit needs a valid Idempotency-Key.")
        body = parse_object(request.body)
        found = unknown_members(body, *MEMBERS) + [
            (f"/{name}", "must be a string, and not empty")
            for name in MEMBERS
            if not (isinstance(body.get(name), str) and body[name])
        ]
        if found:
            raise not_allowed(*found)
        digest = hashlib.sha256(f"{operation.name}\n".encode() + request.body).digest()
        return cls(key[1], digest, token_hash(body["plan_token"]), body["input_fingerprint"])


def commit(store: Store, operation: Operation, request: Request, source: str) -> Answer:
    """Apply the plan whose token is in the body, once, whatever is repeated.

    Source: 7-interfaces, "The target's side".
    """
    order = Order.of(operation, request)
    with store.transaction() as transaction:
        if answer := replay(transaction, order):
            return answer
        plan = locked(transaction, operation, order)
        answer = repeat(plan, source) or _settle(transaction, operation, plan, order, source)
        transaction.keep(Kept(order.key, order.sha256, answer.status, answer.text), plan.now)
        return answer


def replay(transaction: Transaction, order: Order) -> Answer | None:
    """What is kept under the key; 409 while it is in use, 422 for another body."""
    if not transaction.hold_key(order.key):
        raise in_progress()
    kept = transaction.kept(order.key)
    if kept is None:
        return None
    if kept.request_sha256 != order.sha256:
        raise Problem(422, "idempotency-key-reused", "This key was used with another body.")
    if kept.status is None:
        return None
    return Answer(kept.status, kept.text, {"Idempotent-Replayed": "true"})


def in_progress() -> Problem:
    """409 that proves nothing."""
    return Problem(409, "in-progress", "A commit of this plan or key is running.")


def locked(transaction: Transaction, operation: Operation, order: Order) -> Plan:
    """The order's plan, which nobody else changes until the end of the transaction."""
    plan = transaction.lock(order.token_sha256)
    if plan is None or plan.operation != operation.name:
        raise Problem(404, "unknown-plan-token", "This plan token is of no plan here.")
    if plan.input_fingerprint != order.fingerprint:
        raise Problem(422, "fingerprint-mismatch", "Token and fingerprint are of two plans.")
    return plan


def _settle(
    transaction: Transaction, operation: Operation, plan: Plan, order: Order, source: str
) -> Answer:
    plan = replace(plan, idempotency_key=order.key)
    changes: list[Change] = []
    if not plan.late:
        changes = moved(operation, plan, transaction)
        # Read after the last lock.
        plan = replace(plan, now=transaction.now())
    outcome = _outcome(transaction, operation, plan, changes)
    done, answer = end(plan, outcome, plan.now, source)
    transaction.update(done)
    return answer


def _outcome(
    transaction: Transaction, operation: Operation, plan: Plan, changes: list[Change]
) -> Applied | NotApplied:
    if plan.late:  # wins over a moved world
        return NotApplied(expired(plan))
    if changes:
        return NotApplied(conflict(plan, changes))
    try:
        with transaction.savepoint():
            return applied(operation.apply(replace(plan, connection=transaction.connection)))
    except Problem as problem:
        if problem.status >= 500:
            raise  # nothing is stored, the same key may come again
        again = isinstance(problem, Conflict) and not problem.changed
        return negative(problem, plan, moved(operation, plan, transaction) if again else [])

"""The dry run, and the read-back of a plan by its ID."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from countersign_target.canonical import fingerprint, plain, rfc3339, token_hash
from countersign_target.exchanges import Answer, Request
from countersign_target.operations import Operation
from countersign_target.plans import Action, Covered, Plan, Planned, State, Status, depended_on
from countersign_target.problems import Problem, nothing_to_change
from countersign_target.stores import Store, Transaction
from countersign_target.strict_json import parse_object

PLAN_ID: Final = re.compile(r"plan_[0-9a-f]{16}", re.ASCII)
MOST_ACTIONS: Final = 20


@dataclass(frozen=True)
class Draft:
    """What the owner's `plan` made of inputs and state, as JSON."""

    actions: list[dict[str, Any]]
    details: Any
    state: Covered


def draft(operation: Operation, inputs: dict[str, Any], state: State) -> Draft:
    """Run the owner's `plan`. 422 for no actions; TypeError and ValueError are its owner's."""
    found: object = operation.plan(inputs, state)
    planned = found if isinstance(found, Planned) else Planned(_sequence(found))
    if not planned.actions:
        raise nothing_to_change("Everything is as wished already.")
    if len(planned.actions) > MOST_ACTIONS:
        raise ValueError(
            f"plan() returned {len(planned.actions)} actions of {MOST_ACTIONS} at most"
        )
    actions = [_body(action) for action in planned.actions]
    return Draft(actions, plain(planned.details), depended_on(state.covered, actions))


def _sequence(found: object) -> Sequence[Action]:
    if isinstance(found, list | tuple):
        return found
    raise TypeError(f"plan() returned {type(found).__name__}, not a list of Actions, or Planned")


def _body(action: object) -> dict[str, Any]:
    if isinstance(action, Action):
        return action.body()
    raise TypeError(f"plan() returned {type(action).__name__} where an Action belongs")


def dry_run(store: Store, operation: Operation, request: Request) -> Answer:
    """Plan and store the plan: the one answer that ever carries its token.

    Source: 7-interfaces, "The target's side".
    """
    inputs = parse_object(request.body)
    operation.check(inputs)
    window = operation.window(request)
    token = secrets.token_urlsafe(32)
    plan_of = _planner(operation, inputs, token, window)
    if operation.outside is None:
        with store.transaction() as transaction:
            # A dry run changes nothing, whatever its owner wrote.
            with transaction.trial():
                made = draft(operation, inputs, _looking(transaction))
            plan = plan_of(transaction, made)
    else:
        # Another system is asked: no transaction waits for it.
        made = draft(operation, inputs, _looking(None))
        with store.transaction() as transaction:
            plan = plan_of(transaction, made)
    return Answer.of({"plan_token": token, **facts(plan)})


def _looking(transaction: Transaction | None) -> State:
    return State(transaction, committing=False)


def _planner(
    operation: Operation, inputs: dict[str, Any], token: str, window: timedelta
) -> Callable[[Transaction, Draft], Plan]:
    def store_plan(transaction: Transaction, made: Draft) -> Plan:
        now = transaction.now()
        plan = Plan(
            plan_id=f"plan_{secrets.token_hex(8)}",
            token_sha256=token_hash(token),
            operation=operation.name,
            input_fingerprint=fingerprint(operation.name, inputs, made.state),
            inputs=inputs,
            state=made.state,
            actions=made.actions,
            details=made.details,
            created_at=now,
            expires_at=now + window,
        )
        transaction.add(plan)
        return plan

    return store_plan


def facts(plan: Plan) -> dict[str, Any]:
    """What dry run and read-back say alike."""
    return {
        "plan_id": plan.plan_id,
        "expires_at": rfc3339(plan.expires_at),
        "input_fingerprint": plan.input_fingerprint,
        "actions": plan.actions,
        "covers": plan.covers,
        "created_at": rfc3339(plan.created_at),
    }


def find(store: Store, plan_id: str) -> tuple[Plan, str]:
    """A plan and the word that a read-back says of it; 404 for none.

    `expired` is a final word: it is stored before it is said, so every later commit is refused,
    even one that is on its way now (T-8). A plan that is `sending` is `in_progress` within its
    lease; after that nobody knows, and `open` is the word that proves nothing.
    """
    if not PLAN_ID.fullmatch(plan_id):
        raise unknown_plan()
    with store.transaction() as transaction:
        found = transaction.read(plan_id)
        if found is None:
            raise unknown_plan()
        plan, quiet = found
        if plan.status is Status.OPEN and not quiet:
            return plan, "in_progress"
        if plan.status is Status.OPEN and plan.late:
            plan = plan.settled(Status.EXPIRED, plan.now)
            transaction.update(plan)
        return plan, _word(plan)


def _word(plan: Plan) -> str:
    if plan.status is not Status.SENDING:
        return plan.status.value
    running = plan.sending_until and plan.now < plan.sending_until
    return "in_progress" if running else "open"


def described(plan: Plan, word: str) -> Answer:
    """The read-back: the plan without its token, and what became of it."""
    body = {**facts(plan), "inputs": plan.inputs, "status": word}
    if plan.status is Status.APPLIED and plan.settled_at:
        body |= {"result": plan.outcome, "first_applied_at": rfc3339(plan.settled_at)}
    return Answer.of(body)


def unknown_plan() -> Problem:
    """404 for a plan ID."""
    return Problem(404, "unknown-plan", "There is no such plan.")

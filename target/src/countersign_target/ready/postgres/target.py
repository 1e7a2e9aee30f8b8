"""One parametrised change in PostgreSQL: dry run by doing and undoing, commit with its key.

The plan's rows, the effect, the idempotency key and the result are in one database, and the commit
is one transaction of it: killed at any moment, either all of it is there or none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import Connection, errors

from countersign_target import (
    Action,
    Change,
    Conflict,
    Later,
    Plan,
    Planned,
    Problem,
    State,
    not_allowed,
    nothing_to_change,
)
from countersign_target.ready.postgres import config
from countersign_target.ready.postgres.guard import carry_out
from countersign_target.ready.postgres.rows import Rows, read

# What the same statements may well do a moment later.
PASSING = (
    errors.QueryCanceled,
    errors.LockNotAvailable,
    errors.DeadlockDetected,
    errors.SerializationFailure,
)
# What the data or the owner's constraints and triggers refuse.
REFUSING = (errors.IntegrityError, errors.DataError, errors.RaiseException)


@dataclass(frozen=True, slots=True)
class Sql:
    """The two functions of an operation."""

    change: config.Change

    def plan(self, inputs: dict[str, Any], state: State) -> Planned:
        """Carry it out, see what it did row by row and column by column, and undo it."""
        if found := self.change.inputs.complaints(inputs):
            raise not_allowed(*found)
        planned_at = datetime.now(UTC)
        parameters = config.parameters(self.change, inputs, planned_at)
        with _told():
            before = self._covered(state.connection, parameters)
            for name, row in before.items():
                state.cover(name, row.shown)
            with state.trial():
                actions = carry_out(state.connection, self.change, before, parameters)
        if not actions:
            raise nothing_to_change("These rows are as wished already, or there are none.")
        return Planned([_action(each) for each in actions], {"planned_at": planned_at.isoformat()})

    def apply(self, plan: Plan) -> dict[str, Any]:
        """Carry it out for good; 409 when it would do anything but what was approved."""
        planned_at = datetime.fromisoformat(plan.details["planned_at"])
        parameters = config.parameters(self.change, plan.inputs, planned_at)
        with _told():
            before = self._covered(plan.connection, parameters)
            actions = carry_out(plan.connection, self.change, before, parameters)
        if differing := _differing(plan.actions, actions):
            raise Conflict(differing, "The change would write other values than were approved.")
        rows: dict[str, dict[str, Any]] = {}
        for each in actions:
            rows.setdefault(each["target"], {})[each["field"]] = each["to"]
        return {"changed": rows}

    def _covered(self, connection: Connection[Any], parameters: Mapping[str, Any]) -> Rows:
        found: Rows = {}
        for covered in self.change.covers:
            found |= read(connection, covered, parameters)
        return found


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What PostgreSQL refuses, in words that hold no other row's values (no DETAIL)."""
    try:
        yield
    except PASSING as fault:
        raise Later(f"PostgreSQL could not do it in time ({type(fault).__name__}).") from None
    except REFUSING as fault:
        words = fault.diag.message_primary or type(fault).__name__
        raise Problem(422, "refused-by-the-database", f"PostgreSQL refuses: {words}.") from None
    except psycopg.ProgrammingError as fault:
        # A mistake in the operator's file, or a right that is missing: no plan is possible.
        words = fault.diag.message_primary or type(fault).__name__
        raise Problem(422, "sql-not-usable", f"The configured SQL fails: {words}.") from None


def _action(each: Mapping[str, Any]) -> Action:
    return Action(each["op"], each["target"], each["field"], each["from"], each["to"])


def _differing(planned: list[dict[str, Any]], actual: list[dict[str, Any]]) -> list[Change]:
    """Every value that would be written otherwise than it was approved."""
    was, now = _writes(planned), _writes(actual)
    return [
        Change(field, was.get((name, field)), now.get((name, field)), name)
        for name, field in dict.fromkeys([*was, *now])
        if (name, field) not in was
        or (name, field) not in now
        or was[name, field] != now[name, field]
    ]


def _writes(actions: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    return {(each["target"], each["field"]): each["to"] for each in actions}

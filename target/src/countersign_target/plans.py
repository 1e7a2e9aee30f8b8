"""What a plan is made of: actions, the state it depends on, and what its owner keeps with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from countersign_target.canonical import plain, same
from countersign_target.problems import Change, Problem

if TYPE_CHECKING:
    from countersign_target.stores import Transaction

# object → path → value
type Covered = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Action:
    """One change that people approve: `Action("update", "invoice/4412", "refunded", 0, 48000)`.

    `op` is a word like update, create, delete; `target` the object; `before` and `after` any JSON.
    """

    op: str
    target: str
    field: str
    before: Any
    after: Any

    def body(self) -> dict[str, Any]:
        """As it goes out: `{op, target, field, from, to}`."""
        values = {"from": plain(self.before), "to": plain(self.after)}
        return {"op": self.op, "target": self.target, "field": self.field, **values}


def updates(target: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Action]:
    """An update of `target` for each field of `after` that `before` has another value for."""
    return [
        Action("update", target, name, before.get(name), value)
        for name, value in after.items()
        if not same(plain(before.get(name)), plain(value))
    ]


@dataclass(frozen=True)
class Planned:
    """What `plan` may return instead of a bare list of actions.

    `details`: any JSON that `apply` needs and nobody else sees (an ETag, a computed amount).
    """

    actions: Sequence[Action]
    details: Any = None


class State:
    """What `plan` reads the world through, and says what it depended on.

    `connection`: the store's, inside the transaction (None for an operation with `outside`).
    `committing`: False in a dry run, True when the same reading is repeated right before `apply`.
    `for_update`: append it to a SELECT of what is covered: `" FOR UPDATE"` where the store has it
    and a commit is running, so that nobody changes the row between this look and the effect.
    """

    def __init__(self, transaction: Transaction | None, *, committing: bool) -> None:
        self._transaction = transaction
        self.connection: Any = transaction.connection if transaction else None
        self.committing = committing
        self.for_update = transaction.for_update if transaction and committing else ""
        self.covered: Covered = {}

    def cover(self, target: str, values: Mapping[str, Any]) -> None:
        """The plan depends on these values of an object: moved until the commit ⇒ 409 names them.

        Objects that are not covered explicitly count by what their actions come `from`.
        """
        self.covered.setdefault(target, {}).update(plain(values))

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Whatever the block does in the store is undone: a dry run by doing."""
        if self._transaction is None:
            raise RuntimeError("an operation whose effect is outside has nothing to roll back")
        with self._transaction.trial():
            yield


def origins(actions: Sequence[Mapping[str, Any]]) -> Covered:
    """What the actions come `from`, by object and field."""
    found: Covered = {}
    for action in actions:
        found.setdefault(action["target"], {})[action["field"]] = action["from"]
    return found


def depended_on(covered: Covered, actions: Sequence[Mapping[str, Any]]) -> Covered:
    """The explicitly covered values; of objects without any, what their actions come from."""
    return {**origins(actions), **covered}


def differences(planned: Covered, current: Covered, *, whole: bool = True) -> list[Change]:
    """Every value that is another one now. Not `whole`: `current` names only what was looked at."""
    changes = []
    # An object that was not there when it was planned is a difference too.
    for target in dict.fromkeys([*planned, *current]) if whole else current:
        values, now = planned.get(target, {}), current.get(target, {})
        changes += [
            Change(path, values.get(path), now.get(path), target)
            for path in dict.fromkeys([*values, *now])
            if not same(values.get(path), now.get(path))
        ]
    return changes


NEVER: Final = datetime.min.replace(tzinfo=UTC)


class Status(StrEnum):
    """What became of a plan. All but the first two are for ever."""

    OPEN = "open"
    # An effect outside the store may be under way.
    SENDING = "sending"
    APPLIED = "applied"
    NOT_APPLIED = "not_applied"
    EXPIRED = "expired"
    PARTLY_APPLIED = "partly_applied"


@dataclass(frozen=True)
class Plan:
    """A stored plan: what `apply` gets, and the row behind every answer about it.

    For `apply`: `inputs`, `actions` (as they went out, with `from` and `to`), `state` (object →
    path → value, as planned), `details`, `connection` (the store's, inside the transaction; None
    for an effect outside), `idempotency_key`, and `now`, the moment of the commit by the store's
    clock. `outcome`: the result, or the problem document that every later commit hears again.
    """

    plan_id: str
    token_sha256: bytes = field(repr=False)
    operation: str
    input_fingerprint: str
    inputs: dict[str, Any]
    state: Covered
    actions: list[dict[str, Any]]
    details: Any
    created_at: datetime
    expires_at: datetime
    status: Status = Status.OPEN
    settled_at: datetime | None = None
    outcome: Any = None
    idempotency_key: str | None = None
    # Of an effect outside: how often it was tried, and until when the last try may be running.
    sends: int = 0
    sending_until: datetime | None = None
    # Not stored: the clock after the row was locked, and the transaction's connection.
    now: datetime = NEVER
    connection: Any = field(default=None, repr=False)

    @property
    def late(self) -> bool:
        """Whether it expired at the moment it was read at."""
        return self.expires_at <= self.now

    @property
    def covers(self) -> list[str]:
        """The objects that the fingerprint covers."""
        return list(dict.fromkeys([*self.state, *(action["target"] for action in self.actions)]))

    def settled(self, status: Status, at: datetime, outcome: Any = None) -> Plan:
        """The same plan with its end."""
        return replace(self, status=status, settled_at=at, outcome=outcome, sending_until=None)


@dataclass(frozen=True)
class Applied:
    """The effect is there. `result`: a JSON object for the caller."""

    result: dict[str, Any]


@dataclass(frozen=True)
class NotApplied:
    """It is not there and never will be: every later commit hears `problem` again."""

    problem: Problem


@dataclass(frozen=True)
class PartlyApplied:
    """Some of it is there: a person must look. `detail` says what."""

    detail: str


@dataclass(frozen=True)
class SendAgain:
    """The effect is not there, and doing it (again) is safe: the other system refuses a second."""


@dataclass(frozen=True)
class Unknown:
    """Nobody can tell (yet)."""

    detail: str = "It is not known whether the other system carried it out."


type Outcome = Applied | NotApplied | PartlyApplied | SendAgain | Unknown

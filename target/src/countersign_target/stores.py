"""What the kit asks of a database: one transaction at a time, two tables, a clock."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from countersign_target.plans import Plan


class StoreAway(Exception):
    """The database does not answer, or stays locked; whether a COMMIT arrived may be open."""


@dataclass(frozen=True)
class Kept:
    """What is kept under an idempotency key. `status` None: an effect outside is under way."""

    key: str
    request_sha256: bytes
    status: int | None
    text: str


class Transaction(Protocol):
    """One transaction of the store; the owner's functions work in it by `connection`.

    `for_update`: what a SELECT needs so that what it read stays until the end.
    """

    connection: Any
    for_update: str

    def now(self) -> datetime:
        """The store's clock at this moment, in whole milliseconds; not the transaction's start."""
        ...

    def trial(self) -> AbstractContextManager[None]:
        """A savepoint that is rolled back whatever happens in it."""
        ...

    def savepoint(self) -> AbstractContextManager[None]:
        """A savepoint that is rolled back when an exception passes."""
        ...

    def hold_key(self, key: str) -> bool:
        """Hold an idempotency key to the end of the transaction; False while another one does."""
        ...

    def kept(self, key: str) -> Kept | None:
        """What is kept under the key."""
        ...

    def keep(self, kept: Kept, at: datetime) -> None:
        """Keep it, in place of what was kept there; its age counts from the first time."""
        ...

    def drop_key(self, key: str) -> None:
        """The key was never used."""
        ...

    def forget_keys(self, before: datetime) -> None:
        """Drop the keys that are older; plans stay."""
        ...

    def forget_plans(self, before: datetime) -> None:
        """Drop plans that expired before, and were not applied, nor may have been."""
        ...

    def add(self, plan: Plan) -> None:
        """Store a new plan."""
        ...

    def update(self, plan: Plan) -> None:
        """Store what became of it: status, settled_at, outcome, idempotency_key, sends,
        sending_until."""
        ...

    def lock(self, token_sha256: bytes) -> Plan | None:
        """The plan of a token, locked to the end; its `now` is the clock after the lock."""
        ...

    def read(self, plan_id: str) -> tuple[Plan, bool] | None:
        """A plan by its ID with `now`, and whether it is quiet: no commit of it is running, and
        none begins before this transaction ends."""
        ...


class Store(Protocol):
    """Where plans and keys live."""

    def prepare(self) -> None:
        """Create the two tables where they are missing; call it once before serving."""
        ...

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Begin; committed at the end of the block, rolled back by an exception. StoreAway when
        the database does not answer."""
        ...

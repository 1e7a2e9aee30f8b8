"""Which intents, agents and targets something happened to: what wakes those who wait (A-5, A-12).

Requests of agents wait for intents and agents; desks of people for the targets they see.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from django.db import connection

# The place in a request's ASGI scope where a view names what its answer waits for.
SCOPE_KEY: Final = "countersign.wait"

# Rows of transactions that committed late have xids at or above the horizon of the look before.
_SINCE: Final = """
    SELECT look.horizon, event.id, event.xid < look.horizon,
        event.intent_id, event.agent, event.target, event.action
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS horizon) AS look
    LEFT JOIN audit_event AS event
        ON event.xid >= %s AND event.era = (SELECT audit_current_era())
"""
# What concerns every desk: the emergency stop, and rules that were changed.
EVERYBODY: Final = "everybody"
_CONCERNS_ALL: Final = ("emergency.", "config.")
_HORIZON: Final = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"


@dataclass(slots=True)
class Wait:
    """Filled in by a view: any event under one of the keys may change the answer.

    `nothing_new`: an answer without an ETag (no work, an empty page) that may be held back.
    `tag_keys`: what may change the representation whose ETag this answer tells, whoever asked.
    """

    keys: set[str] = field(default_factory=set)
    tag_keys: set[str] = field(default_factory=set)
    nothing_new: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the trail: every event at or after the last horizon, by its ID.

    An event above the horizon of this look has its ID negated: readers of the feed are not told of
    it yet (A-14), so it counts once more, as another one, when it has fallen below.
    """

    horizon: int
    keys_by_event: dict[int, tuple[str, ...]]


def intent_key(intent_id: object) -> str:
    """Every event of a plan names its intent, and so do those of its re-plans."""
    return f"intent:{intent_id}"


def agent_key(name: str) -> str:
    return f"agent:{name}"


def target_key(name: str) -> str:
    return f"target:{name}"


def intents_of(keys: Iterable[str]) -> set[str]:
    """The IDs of the intents among the keys."""
    prefix = intent_key("")
    return {key.removeprefix(prefix) for key in keys if key.startswith(prefix)}


def look(since: int | None) -> Look:
    """The events that a look with the horizon `since` may not have seen; None: only the horizon.

    A transaction below the horizon has ended, so nothing below it can appear any more: events are
    told twice, never missed, however late they commit.
    """
    with connection.cursor() as cursor:
        if since is None:
            cursor.execute(_HORIZON)
            return Look(cursor.fetchone()[0], {})
        cursor.execute(_SINCE, [since])
        rows = cursor.fetchall()
    found = {
        (pk if below else -pk): _keys(intent_id, agent, target, action)
        for _, pk, below, intent_id, agent, target, action in rows
        if pk is not None
    }
    return Look(rows[0][0], found)


def stop_looking() -> None:
    """Give the connection of this thread back."""
    connection.close()


def _keys(intent_id: object, agent: str, target: str, action: str) -> tuple[str, ...]:
    named = (
        intent_id is not None and intent_key(intent_id),
        agent and agent_key(agent),
        target and target_key(target),
        action.startswith(_CONCERNS_ALL) and EVERYBODY,
    )
    return tuple(key for key in named if key)

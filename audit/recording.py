"""`record()`: the only way into the trail, always inside the transaction of the change (L-1)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from django.db import connection

from audit.actions import Action
from audit.actors import Actor
from audit.models import Event
from audit.writing import insert


@dataclass(frozen=True, slots=True)
class Subject:
    """What the event is about, in the words of its moment."""

    target: str = ""
    operation: str = ""
    agent: str = ""
    plan_id: str = ""
    intent_id: uuid.UUID | None = None
    task_id: str = ""
    title: str = ""


class Moved(TypedDict, total=False):
    """The statuses between which the event moved its plan."""

    from_status: str
    to_status: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the request came from; empty outside a request."""

    ip: str | None = None
    request_id: str = ""


_NOWHERE = Origin()
_origin: ContextVar[Origin] = ContextVar("audit_origin", default=_NOWHERE)


@contextmanager
def origin(ip: str | None, request_id: str) -> Iterator[None]:
    """Snapshot IP and request id on every event recorded inside."""
    token = _origin.set(Origin(ip, request_id))
    try:
        yield
    finally:
        _origin.reset(token)


def record(
    action: Action,
    actor: Actor,
    subject: Subject,
    details: Mapping[str, Any] | None = None,
    **moved: Unpack[Moved],
) -> Event:
    """Store one event. Raises RuntimeError outside a transaction: no event, no change (L-1)."""
    return insert(draft(action, actor, subject, details, **moved))


def draft(
    action: Action,
    actor: Actor,
    subject: Subject,
    details: Mapping[str, Any] | None = None,
    **moved: Unpack[Moved],
) -> Event:
    """The event for who stores it together with its change. Raises as `record()` does."""
    if not connection.in_atomic_block:
        raise RuntimeError("an event belongs in the transaction of its change")
    where = _origin.get()
    return Event(
        action=action,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_label=actor.label[:200],
        target=subject.target,
        operation=subject.operation,
        agent=subject.agent,
        plan_id=subject.plan_id,
        intent_id=subject.intent_id,
        task_id=subject.task_id,
        title=subject.title,
        ip=where.ip,
        request_id=where.request_id[:64],
        details=dict(details or {}),
        **moved,
    )

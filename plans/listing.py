"""What an agent may read: its own plans and intents, and nobody else's (A-5, A-7, SEC-4)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

from django.core import signing
from django.db import models
from django.db.models import QuerySet

from audit.models import ClockTimestamp
from audit.statements import Slot, Statement
from plans.errors import InvalidCursor, InvalidLimit, InvalidParameter, NotFound
from plans.feed import Cursor
from plans.inspection import TASK_ID
from plans.models import Agent, Intent, Plan, Replan
from plans.schemas import is_plan_id
from plans.status import Status

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 200
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
# Large or secret, and in no answer.
_LEFT_OUT: Final = ("token", "commit_body", "inputs", "document")
# What an answer tells of the plan before and the plan after.
_OF_NEIGHBOURS: Final = frozenset({"id", "plan_id", "replaces", "status", "actions", "conflict"})


@dataclass(frozen=True, slots=True)
class Page:
    plans: Sequence[Plan]
    next: str | None


def own_plans(agent: Agent | Slot) -> QuerySet[Plan]:
    """The agent's plans with all that an answer names, and `now` of PostgreSQL's clock."""
    neighbours = [
        f"{side}__{field.name}"
        for side in ("replaces", "replaced_by")
        for field in Plan._meta.concrete_fields
        if field.name not in _OF_NEIGHBOURS
    ]
    return (
        Plan.objects.filter(agent=agent)
        .select_related("target", "operation", "intent", "replaces", "replaced_by", "replan")
        .defer(*_LEFT_OUT, *neighbours, "intent__inputs", "target__credential")
        .annotate(now=ClockTimestamp())
    )


_AGENT: Final = Slot("agent", models.BigIntegerField())
_OWN_PLAN: Final = Statement(
    lambda: own_plans(_AGENT).filter(
        target__name=Slot("target", models.TextField()),
        plan_id=Slot("plan_id", models.TextField()),
    )
)


def read_at(row: Plan | Intent) -> datetime:
    """PostgreSQL's clock when a row of this module was read (C-1)."""
    return cast("datetime", cast("Any", row).now)


def own_plan(agent: Agent, target: str, plan_id: str) -> Plan:
    """One plan of the agent's. NotFound alike for what is not there and what is not its own."""
    if not is_plan_id(plan_id) or not target.isprintable():
        raise NotFound()
    plan = _OWN_PLAN.first(agent=agent.pk, target=target, plan_id=plan_id)
    if plan is None:
        raise NotFound()
    return plan


def own_intent(agent: Agent, intent_id: str) -> Intent:
    """One intent of the agent's, with `now`; NotFound as for plans."""
    if not _UUID.fullmatch(intent_id):
        raise NotFound()
    intent = (
        Intent.objects.filter(agent=agent, pk=uuid.UUID(intent_id))
        .select_related("target", "operation")
        .annotate(now=ClockTimestamp())
        .first()
    )
    if intent is None:
        raise NotFound()
    return intent


def current_plan(agent: Agent, intent: Intent) -> Plan | None:
    """The intent's latest revision."""
    return own_plans(agent).filter(intent=intent).order_by("-revision").first()


def current_replan(intent: Intent) -> Replan | None:
    """The intent's latest piece of re-planning work, its first dry run included."""
    return Replan.objects.filter(intent=intent).order_by("-pk").first()


def page_of(agent: Agent, query: Mapping[str, list[str]]) -> Page:
    """The agent's plans, newest first, as a keyset page. Raises Problems (422)."""
    given = _once(query)
    limit = _limit(given.pop("limit", None))
    found = own_plans(agent)
    if (cursor := given.pop("cursor", None)) is not None:
        found = found.filter(pk__lt=_place(agent, cursor))
    if given:
        found = found.filter(**{name: _value(name, text) for name, text in given.items()})
    rows = list(found.order_by("-pk")[: limit + 1])
    more = len(rows) > limit
    plans = rows[:limit]
    return Page(plans, _cursor(agent, plans[-1].pk) if more else None)


def feed_query(query: Mapping[str, list[str]]) -> tuple[Cursor, int]:
    """Where a reader of events goes on, and how many it takes. Raises Problems (422)."""
    given = _once(query, frozenset({"after", "limit"}))
    after = given.get("after")
    return Cursor() if after is None else Cursor.parse(after), _limit(given.get("limit"))


_PARAMETERS: Final = frozenset({"status", "task_id", "intent_id", "cursor", "limit"})


def _once(query: Mapping[str, list[str]], allowed: frozenset[str] = _PARAMETERS) -> dict[str, str]:
    for name, values in query.items():
        if name not in allowed:
            raise InvalidParameter("There is no such parameter here.")
        if len(values) != 1:
            raise InvalidParameter(f"{name} is given more than once.")
    return {name: values[0] for name, values in query.items()}


def _limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_LIMIT
    if not re.fullmatch("[1-9][0-9]{0,2}", text, re.ASCII) or int(text) > MAX_LIMIT:
        raise InvalidLimit()
    return int(text)


def _value(name: str, text: str) -> str | uuid.UUID:
    if name == "status" and text in Status.values:
        return text
    if name == "task_id" and TASK_ID.fullmatch(text):
        return text
    if name == "intent_id" and _UUID.fullmatch(text):
        return uuid.UUID(text)
    raise InvalidParameter(f"{name} has a value that is not allowed.")


def _signer(agent: Agent) -> signing.Signer:
    """Bound to the agent: another one's cursor has no meaning here (BI-48)."""
    return signing.Signer(salt=f"plans.listing.{agent.pk}")


def _cursor(agent: Agent, pk: int) -> str:
    return _signer(agent).sign_object({"before": pk})


def _place(agent: Agent, cursor: str) -> int:
    try:
        value: Any = _signer(agent).unsign_object(cursor)
        return int(value["before"])
    except (signing.BadSignature, ValueError, KeyError, TypeError):
        raise InvalidCursor() from None

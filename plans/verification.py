"""Verification at intake: the plan as the target tells it is what is stored and shown (T-2)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import F, QuerySet

from audit import actors
from audit.models import ClockTimestamp, StatementTimestamp
from plans import timestamps
from plans.canonical import jcs_equal
from plans.clock import clock
from plans.enrolment import go_stale_by_earlier_write
from plans.errors import Problem
from plans.exchanges import Answer, Exchange
from plans.inspection import inspect_covers
from plans.lifecycle import Verb, transition
from plans.models import Plan
from plans.oversight import oversight
from plans.reading import read_plan
from plans.status import Status
from plans.strict_json import JsonObject, parse_object, parse_text

log = structlog.get_logger(__name__)

# One claim at a time; an unreachable target is asked again after it, until the plan expires.
LEASE: Final = timedelta(seconds=15)


class Unreadable(Exception):
    """The target did not answer in a way that says anything about the plan."""


def verify(pk: int) -> None:
    """Read the plan back and settle it as pending or mismatched; unreachable: later again.

    Running it any number of times, at once or late, comes to the same (Q-1).
    """
    plan = _claim(pk)
    if plan is None:
        return
    if not plan.target.reads_back:
        unread = {"verification": Plan.Verification.UNAVAILABLE}
        _accept(plan, unread, Verb.ACCEPT_UNVERIFIED)
        return
    try:
        told = _told(read_plan(plan))
    except Unreadable as fault:
        log.info("verification.unreadable", plan_id=plan.plan_id, reason=str(fault))
        return
    differences = compare(plan, told)
    if differences:
        _mismatch(pk, differences)
    elif told and told.get("status") == "expired":
        _expire(pk)
    else:
        _accept(plan, _as_told(plan, told or {}), Verb.VERIFY)


def _claim(pk: int) -> Plan | None:
    claimed = Plan.objects.filter(
        pk=pk, status=Status.VERIFYING, verify_at__lte=ClockTimestamp()
    ).update(verify_at=ClockTimestamp() + LEASE, verify_tries=F("verify_tries") + 1)
    return Plan.objects.named(pk) if claimed else None


def _told(exchange: Exchange) -> JsonObject | None:
    """The target's words; None: it does not know the plan."""
    if not isinstance(exchange, Answer):
        raise Unreadable(exchange.reason)
    if exchange.status == 404:
        return None
    if exchange.status != 200:
        raise Unreadable(f"status {exchange.status}")
    try:
        told = parse_object(exchange.body)
        inspect_covers(told.get("covers"), "/covers")
    except Problem as fault:
        raise Unreadable(fault.code) from None
    return told


def compare(plan: Plan, told: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Every difference between the submission and the read-back: {pointer, submitted, read_back}.

    `told` is None when the target does not know the plan. A plan that was used already is not
    what was submitted either; one that has expired over there is only late.
    """
    if told is None:
        return [{"pointer": "", "submitted": plan.plan_id, "read_back": None}]
    pairs = {
        "/plan_id": (plan.plan_id, told.get("plan_id")),
        "/input_fingerprint": (plan.input_fingerprint, told.get("input_fingerprint")),
        "/actions": (plan.actions, told.get("actions")),
    }
    found = [
        {"pointer": pointer, "submitted": ours, "read_back": theirs}
        for pointer, (ours, theirs) in pairs.items()
        if not jcs_equal(ours, theirs)
    ]
    state = told.get("status", "open")
    if state not in ("open", "expired"):
        found.append({"pointer": "/status", "submitted": "open", "read_back": state})
    if _instant(told.get("expires_at")) != plan.expires_at:
        theirs = told.get("expires_at")
        ours = plan.expires_at_text
        found.append({"pointer": "/expires_at", "submitted": ours, "read_back": theirs})
    if "inputs" in told and not _same_inputs(plan, told["inputs"]):
        ours = bytes(plan.inputs).decode()
        found.append({"pointer": "/inputs", "submitted": ours, "read_back": told["inputs"]})
    return found


def _same_inputs(plan: Plan, theirs: Any) -> bool:
    """JCS-equal; a target may return the object or its text."""
    try:
        value = parse_text(theirs) if isinstance(theirs, str) else theirs
        return jcs_equal(parse_object(bytes(plan.inputs)), value)
    except Problem:
        return False


def _instant(value: object) -> datetime | None:
    try:
        return timestamps.parse_instant(value, "/expires_at")
    except Problem:
        return None


def _as_told(plan: Plan, told: Mapping[str, Any]) -> dict[str, Any]:
    """The target's values replace the submission's, even where they are equal."""
    covers = told.get("covers")
    return {
        "verification": Plan.Verification.VERIFIED,
        "actions": told["actions"],
        "covers": plan.covers if covers is None else covers,
        "inputs_confirmed": "inputs" in told,
        "plan_created_at": _instant(told.get("created_at")) or plan.plan_created_at,
    }


def _accept(plan: Plan, facts: dict[str, Any], verb: Verb) -> None:
    read_from = plan.target.connection_version
    with transaction.atomic():
        plan = Plan.objects.locked_with_intent(plan.pk)
        now = clock()
        if plan.status != Status.VERIFYING or plan.decide_by <= now:
            # Too late to be decided on: the sweep expires it.
            return
        if plan.target.connection_version != read_from:
            # What was read came from an address that is not the target's any more: read again.
            return
        facts = {**facts, "connection_version": read_from}
        for name, value in {**facts, "verified_at": now}.items():
            setattr(plan, name, value)
        _show(plan, verb, facts, now)
        # The target's word for what the plan covers, and since when, may differ.
        go_stale_by_earlier_write(plan, actors.VERIFIER)


def _show(plan: Plan, verb: Verb, facts: dict[str, Any], now: datetime) -> None:
    """The plan waits for people from here, with what they will see (B-2)."""
    seen = oversight().assess(plan)
    plan.title = seen.title
    transition(
        plan,
        verb,
        actor=actors.VERIFIER,
        details={"digest": seen.digest, "risk": seen.risk},
        **facts,
        verified_at=now if plan.verified else None,
        verify_at=None,
        **seen.columns(),
    )


def _expire(pk: int) -> None:
    """The target's clock says that the time is over; it is the one that will be asked (R-1)."""
    with transaction.atomic():
        plan = Plan.objects.locked_with_intent(pk)
        if plan.status == Status.VERIFYING:
            told_by = actors.target(plan.target_id, plan.target.name)
            transition(
                plan, Verb.EXPIRE, actor=told_by, details={"reason": "expired at the target"}
            )


def _mismatch(pk: int, differences: list[dict[str, Any]]) -> None:
    with transaction.atomic():
        plan = Plan.objects.locked(pk)
        if plan.status == Status.VERIFYING:
            transition(
                plan,
                Verb.MISMATCH,
                actor=actors.target(plan.target_id, plan.target.name),
                details={"differences": differences},
                mismatches=differences,
            )


def due(head_start: timedelta) -> QuerySet[Plan, int]:
    """Plans to be read back now; the sweep asks this."""
    rung = StatementTimestamp() - head_start
    rows = Plan.objects.filter(status=Status.VERIFYING, verify_at__lte=rung)
    return rows.order_by("verify_at").values_list("pk", flat=True)[:200]

"""What is left of a run: the ledger against the trail, and every row against its mode."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from django.core.management import CommandError, call_command
from django.db import close_old_connections

from approvals.models import Decision
from audit.models import Event
from plans.models import Attempt, Plan
from plans.status import TERMINAL, Status
from tests.chaos.checker import Effect, History, Story, judge
from tests.faults.target_process import TargetProcess
from tests.matrix.combinations import ends
from tests.matrix.staging import Staged


def findings(staged: Sequence[Staged], target: TargetProcess, told: Iterable[str]) -> list[str]:
    """Whatever breaks an invariant, or is not what a row's mode leads to; `told`: acknowledged."""
    told_of = stories()
    ledger = target.ledger()
    effects = tuple(Effect(row["plan_id"], row["key"], row["cents"]) for row in ledger)
    holds, report = _chain()
    history = History(effects, told_of, frozenset(told), chain_holds=holds, chain_report=report)
    ended = {story.plan_id: story for story in told_of}
    arrivals = target.arrivals()
    return [
        *judge(history).findings,
        *_wrong_ends(staged, ended),
        *_other_keys(ended, arrivals),
        *_sent_twice(arrivals),
        *_told_twice(),
        *_without_successor(staged),
    ]


def stories() -> tuple[Story, ...]:
    """Every plan as Countersign tells it."""
    outcomes: dict[int, list[str]] = defaultdict(list)
    for plan, outcome in Attempt.objects.order_by("number").values_list("plan_id", "outcome"):
        outcomes[plan].append(outcome)
    moves = Event.objects.exclude(to_status="").order_by("id")
    trail = dict(moves.values_list("plan_id", "to_status"))
    approvals = Counter(Decision.objects.values_list("plan_id", flat=True))
    told = partial(_story, outcomes=outcomes, trail=trail, approvals=approvals)
    return tuple(told(plan) for plan in Plan.objects.order_by("id"))


def _story(
    plan: Plan,
    *,
    outcomes: dict[int, list[str]],
    trail: dict[str, str],
    approvals: Counter[int],
) -> Story:
    (change,) = [each for each in plan.actions if each["field"] == "refunded_cents"]
    return Story(
        plan_id=plan.plan_id,
        key=plan.idempotency_key,
        cents=change["to"] - change["from"],
        status=plan.status,
        # A staged plan that nobody has decided on has no story yet.
        trail=trail.get(plan.plan_id, plan.status),
        outcomes=tuple(outcomes[plan.pk]),
        approvals=approvals[plan.pk],
    )


def _chain() -> tuple[bool, str]:
    said = io.StringIO()
    try:
        call_command("verify_audit", stdout=said, stderr=said)
    except (CommandError, SystemExit) as refusal:
        return not (isinstance(refusal, SystemExit) and refusal.code), f"{said.getvalue()}{refusal}"
    finally:
        close_old_connections()
    return True, ""


def _wrong_ends(staged: Iterable[Staged], ended: dict[str, Story]) -> list[str]:
    """Ends that break no invariant, and yet are not what the mode leads to."""
    return [
        f"{each.row}: {story.status} after {story.outcomes}"
        for each in staged
        if (story := ended[each.plan.plan_id]).status not in ends(each.row)
    ]


def _other_keys(ended: dict[str, Story], arrivals: Iterable[dict[str, Any]]) -> list[str]:
    """T-1, T-9: one key and one body in every attempt, the stored ones."""
    bodies: dict[str, set[str]] = defaultdict(set)
    keys: dict[str, set[str]] = defaultdict(set)
    for each in arrivals:
        bodies[each["plan_id"]].add(each["body_sha256"])
        keys[each["plan_id"]].add(each["key"])
    found = [
        f"plan {plan}: sent with other bodies" for plan, each in bodies.items() if len(each) > 1
    ]
    return found + [
        f"plan {plan}: sent with {len(each)} keys, or another one"
        for plan, each in keys.items()
        if each != {ended[plan].key}
    ]


def _sent_twice(arrivals: Iterable[dict[str, Any]]) -> list[str]:
    """T-3: an attempt's row is written before it is sent, and whoever has its lease sends it."""
    sends = Counter((each["plan_id"], int(each["attempt"])) for each in arrivals)
    known = set(Attempt.objects.values_list("plan__plan_id", "number"))
    return [
        f"attempt {each}: sent {count} times, {'known' if each in known else 'without a row'}"
        for each, count in sends.items()
        if count > 1 or each not in known
    ]


def _told_twice() -> list[str]:
    """B-4 and FM-24: one decision of a person, and one end of a plan, whatever was repeated."""
    decisions = Counter(Decision.objects.values_list("plan__plan_id", flat=True))
    closed = Event.objects.filter(to_status__in=[each.value for each in TERMINAL])
    ends = Counter(closed.values_list("plan_id", flat=True))
    counted = {"decisions": decisions, "ends": ends}
    return [
        f"plan {plan}: {count} {what}"
        for what, counts in counted.items()
        for plan, count in counts.items()
        if count > 1
    ]


def _without_successor(staged: Iterable[Staged]) -> list[str]:
    """R-1, R-2: one fresh revision, which waits for people."""
    rows = {each.plan.intent_id: each.row for each in staged if each.row.family == "replan"}
    found = defaultdict(list)
    for plan in Plan.objects.filter(intent__in=rows, revision__gt=1):
        found[plan.intent_id].append(plan.status)
    return [
        f"{row}: revisions {found[intent]}"
        for intent, row in rows.items()
        if found[intent] != [Status.PENDING]
    ]

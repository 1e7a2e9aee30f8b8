"""Acts in threads that start at once, and what came of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.contrib.auth.models import User
from django.db import connection

from approvals.decisions import Ballot, decide
from audit.models import Event
from plans import sweeper
from plans.errors import Problem
from plans.models import Plan
from tests.plans.engine import fresh

type Act = Callable[[], object]
THREADS = 8


def at_once(*acts: Act) -> list[object]:
    """What each act returned, or the problem it raised; they all start behind one barrier."""
    barrier = threading.Barrier(len(acts))

    def run(act: Act) -> object:
        try:
            barrier.wait(10)
            return act()
        except Problem as problem:
            return problem
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return [future.result(30) for future in [pool.submit(run, act) for act in acts]]


def vote(person: User, plan: Plan, verdict: str = "approve") -> Act:
    note = "" if verdict == "approve" else "no"
    return lambda: decide(person, plan.pk, Ballot(verdict, note, plan.digest))


def codes_of(results: list[object]) -> list[str]:
    return sorted(result.code for result in results if isinstance(result, Problem))


def swept(plan: Plan) -> Plan:
    sweeper.carry_out(plan.pk)
    return fresh(plan)


def said(plan: Plan, *words: str) -> list[str]:
    """Those of the words that the trail has of this plan, once per event."""
    rows = Event.objects.filter(plan_id=plan.plan_id, action__in=words).order_by("id")
    return list(rows.values_list("action", flat=True))

"""How far the engine is behind what is due."""

from __future__ import annotations

import time

from django.db import connection
from django.db.models import Count

from plans.models import Plan, Replan
from plans.status import TERMINAL, Status

_OLDEST = """
    SELECT round(extract(epoch FROM clock_timestamp() - min(next_attempt_at))::numeric, 3)::float8
    FROM plans_plan
    WHERE next_attempt_at IS NOT NULL AND next_attempt_at <= clock_timestamp()
"""
ALIVE = [status for status in Status if status not in TERMINAL]


def oldest_due_seconds() -> float:
    """Age of the oldest commit that is due and has not left; 0 when none is."""
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST)
        row = cursor.fetchone()
    return float(row[0] or 0)


def clock_skew_seconds() -> float:
    """PostgreSQL's clock less this process's: one decides, the other schedules (C-1)."""
    with connection.cursor() as cursor:
        before = time.time()
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        after = time.time()
        row = cursor.fetchone()
    return round(float(row[0]) - (before + after) / 2, 3)


def alive() -> dict[str, int]:
    """How many plans are in each status that is not terminal; what is closed costs nothing."""
    rows = Plan.objects.filter(status__in=ALIVE).values_list("status").annotate(Count("id"))
    return {str(status): 0 for status in ALIVE} | dict(rows.order_by())


def replans() -> dict[str, int]:
    """How much re-planning work is queued, running and parked."""
    rows = Replan.objects.waiting().values_list("status").annotate(Count("id"))
    return dict.fromkeys(Replan.WAITING, 0) | dict(rows.order_by())

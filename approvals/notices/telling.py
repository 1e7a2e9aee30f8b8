"""The trail becomes notices: when a plan begins to wait for people, when one of them has to look
at its target, and when it is over.

The transaction of the change knows nothing of it, so that no mail server and no chat can hold up
a decision. The sweeper walks the trail afterwards; unique rows make a second walk harmless.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction

from approvals.notices.rows import Notice, NoticedUpTo
from plans.clock import clock
from plans.status import TERMINAL, Status
from plans.walking import TO_HERE, Here, newest, next_page

BATCH: Final = 2_000
ROUNDS: Final = 5
# How long the log of what is over is kept.
KEPT: Final = timedelta(days=30)
# What is told while the plan has this status, and not once it has another.
NEEDS_PEOPLE: Final = {
    Status.PENDING: Notice.Moment.WAITS,
    Status.UNRESOLVED: Notice.Moment.UNRESOLVED,
}
_PRUNED_AT_ONCE: Final = 500

_PLANS: Final = f"""
    FROM (SELECT e.id, e.at, e.xid, e.target, e.plan_id {TO_HERE}
        AND e.to_status = ANY(%(statuses)s) AND e.from_status <> e.to_status) AS e
    JOIN plans_target AS t ON t.name = e.target
    JOIN plans_plan AS p ON p.target_id = t.id AND p.plan_id = e.plan_id
"""
_INTO: Final = """
    INSERT INTO approvals_notice (uid, channel_id, plan_id, person_id, moment,
        status, tries, attempts_made, next_attempt_at)
"""
_DUE_NOW: Final = "'waiting', 0, 0, clock_timestamp()"
# Whoever may decide, or say what they found at the target: its groups, and of a person one of
# them; not the agent's owner.
_TO_GROUPS: Final = f"""{_INTO}
    SELECT gen_random_uuid(), c.id, p.id, NULL, %(moment)s, {_DUE_NOW} {_PLANS}
    JOIN plans_target_reviewers AS r ON r.target_id = p.target_id
    JOIN approvals_channel AS c ON c.group_id = r.group_id
        AND c.kind = 'webhook' AND c.on_since <= e.at
    WHERE p.status = %(status)s ORDER BY e.xid, e.id ON CONFLICT DO NOTHING
"""
_TO_PEOPLE: Final = f"""{_INTO}
    SELECT DISTINCT ON (p.id, u.id)
        gen_random_uuid(), c.id, p.id, u.id, %(moment)s, {_DUE_NOW} {_PLANS}
    JOIN plans_target_reviewers AS r ON r.target_id = p.target_id
    JOIN approvals_channel AS c ON c.group_id = r.group_id
        AND c.kind = 'mail' AND c.on_since <= e.at
    JOIN auth_user_groups AS m ON m.group_id = c.group_id
    JOIN auth_user AS u ON u.id = m.user_id AND u.is_active AND u.email <> ''
    JOIN plans_agent AS a ON a.id = p.agent_id AND a.owner_id <> u.id
    WHERE p.status = %(status)s
        AND NOT EXISTS (SELECT FROM approvals_silence AS s WHERE s.person_id = u.id)
    ORDER BY p.id, u.id, c.id ON CONFLICT DO NOTHING
"""
# To those who were told, or are just being told, that people are needed.
_OVER: Final = f"""{_INTO}
    SELECT gen_random_uuid(), n.channel_id, n.plan_id, n.person_id, 'over', {_DUE_NOW} {_PLANS}
    JOIN approvals_notice AS n ON n.plan_id = p.id AND n.moment <> 'over'
        AND n.status IN ('waiting', 'delivered')
    JOIN approvals_channel AS c ON c.id = n.channel_id AND c.on_since IS NOT NULL
    ORDER BY e.xid, e.id ON CONFLICT DO NOTHING
"""


def begin() -> None:
    """From here on the trail is walked: with the first channel, and from this moment."""
    if NoticedUpTo.objects.exists():
        return
    with connection.cursor() as cursor:
        here = newest(cursor)
    NoticedUpTo.objects.bulk_create([NoticedUpTo(**asdict(here))], ignore_conflicts=True)


def tell_all(most: int = BATCH) -> int:
    """Make the notices of what is new; how many events were looked at."""
    events = 0
    for _ in range(ROUNDS):
        page = tell_page(most)
        events += page
        if page < most:
            break
    return events


def tell_page(most: int) -> int:
    """One page of events; 0: nothing new, or another process is at it."""
    with transaction.atomic(), connection.cursor() as cursor:
        here = NoticedUpTo.objects.select_for_update(skip_locked=True).first()
        page = next_page(cursor, Here(here.era, here.xid, here.event_id), most) if here else None
        if page is None:
            return 0
        _tell(cursor, page.place)
        NoticedUpTo.objects.update(**asdict(page.end))
        return page.events


def _tell(cursor: Any, place: dict[str, int]) -> None:
    for status, moment in NEEDS_PEOPLE.items():
        begun = {"statuses": [str(status)], "status": str(status), "moment": str(moment)}
        cursor.execute(_TO_GROUPS, place | begun)
        if settings.SMTP_HOST:
            cursor.execute(_TO_PEOPLE, place | begun)
    cursor.execute(_OVER, place | {"statuses": [str(status) for status in TERMINAL]})


def prune() -> None:
    """Forget what has been over for so long, a few rows at a time."""
    old = Notice.objects.filter(closed_at__lt=clock() - KEPT).order_by("closed_at")
    pks = list(old.values_list("pk", flat=True)[:_PRUNED_AT_ONCE])
    if pks:
        Notice.objects.filter(pk__in=pks, closed_at__isnull=False).delete()

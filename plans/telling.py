"""Events become deliveries: one per event and webhook, none missed, none twice (W-1, A-14).

The transaction of the change knows nothing of it: a webhook costs no decision and no commit a
query, and its failure can never change a plan (FM-54). The sweeper walks the trail afterwards.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Final

from django.db import connection, transaction

from audit.failpoints import failpoint
from plans.clock import clock
from plans.feed import TOLD
from plans.models import Delivery, ToldUpTo
from plans.walking import TO_HERE, Here, newest, next_page

BATCH: Final = 2_000
ROUNDS: Final = 5
# How long the log of what is over is kept.
KEPT: Final = timedelta(days=30)
_PRUNED_AT_ONCE: Final = 500

# What happened before somebody switched the webhook on is in `GET /events`.
_TELL: Final = f"""
    INSERT INTO plans_delivery
        (uid, webhook_id, event_id, status, tries, attempts_made, next_attempt_at)
    SELECT gen_random_uuid(), w.id, e.id, 'waiting', 0, 0, clock_timestamp()
    FROM (SELECT e.id, e.xid, e.agent, e.at {TO_HERE}
        AND e.agent <> '' AND (e.to_status <> '' OR e.action = ANY(%(told)s))) AS e
    JOIN plans_agent AS a ON a.name = e.agent AND a.active
    JOIN plans_webhook AS w ON w.agent_id = a.id AND w.on_since <= e.at
    ORDER BY e.xid, e.id
    ON CONFLICT (webhook_id, event_id) DO NOTHING
    RETURNING webhook_id
"""


def begin() -> None:
    """From here on the trail is walked: with the first webhook, and from this moment."""
    if ToldUpTo.objects.exists():
        return
    with connection.cursor() as cursor:
        here = newest(cursor)
    ToldUpTo.objects.bulk_create([ToldUpTo(**asdict(here))], ignore_conflicts=True)


def tell_all(most: int = BATCH) -> set[int]:
    """Make the deliveries of what is new; the webhooks that have something to send now."""
    told: set[int] = set()
    for _ in range(ROUNDS):
        events, webhooks = tell_page(most)
        told |= webhooks
        if events < most:
            break
    return told


def tell_page(most: int) -> tuple[int, set[int]]:
    """One page: how many events it was, and for which webhooks. 0: nothing new, or another's."""
    with transaction.atomic(), connection.cursor() as cursor:
        here = ToldUpTo.objects.select_for_update(skip_locked=True).first()
        page = next_page(cursor, Here(here.era, here.xid, here.event_id), most) if here else None
        if page is None:
            return 0, set()
        cursor.execute(_TELL, page.place | {"told": [str(action) for action in TOLD]})
        webhooks = {pk for (pk,) in cursor.fetchall()}
        ToldUpTo.objects.update(**asdict(page.end))
        failpoint("hook.told", page.end.event_id)
        return page.events, webhooks


def prune() -> None:
    """Forget what has been over for so long, a few rows at a time."""
    old = Delivery.objects.filter(closed_at__lt=clock() - KEPT).order_by("closed_at")
    pks = list(old.values_list("pk", flat=True)[:_PRUNED_AT_ONCE])
    if pks:
        Delivery.objects.filter(pk__in=pks, closed_at__isnull=False).delete()

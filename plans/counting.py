"""Counters over the whole installation, folded out of the trail a page at a time.

The sweeper adds new events to a few hundred rows, so that a scrape costs the same after a million
plans as after ten, is right whichever process answers it, and never goes back. Like the seals,
they hold what is below the horizon: no event is missed, none counts twice, each a second or two
after it happened. After an upgrade they catch up with an old trail at BATCH times ROUNDS a second.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from django.db import connection, transaction

from audit.actions import Action
from plans.models import CountedUpTo
from plans.walking import TO_HERE, Here, next_page

BATCH: Final = 2_000
ROUNDS: Final = 5
# From the approval to the first send, in seconds.
BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
BOUNDS: Final = (*(str(bound) for bound in BUCKETS), "+Inf")
APPROVE_TO_SEND: Final = "approve_to_send"
# Actions that differ by a member of their details; every value of it is a word of ours.
WORDS: Final = {
    Action.DECISION_RECORDED: "verdict",
    Action.DECISION_REFUSED: "code",
    Action.ATTEMPT_CLOSED: "outcome",
    Action.REPLAN_QUEUED: "cause",
}

_ADD: Final = """
    ON CONFLICT (action, word, target, status) DO UPDATE SET
        value = c.value + excluded.value, seconds = c.seconds + excluded.seconds
"""
_WORD: Final = (
    "CASE e.action "
    + " ".join(f"WHEN '{action}' THEN e.details ->> '{key}'" for action, key in WORDS.items())
    + " END"
)
_COUNT: Final = f"""
    INSERT INTO plans_counter AS c (action, word, target, status, value, seconds)
    SELECT e.action, left(coalesce({_WORD}, ''), 40), e.target,
        CASE WHEN e.to_status <> e.from_status THEN e.to_status ELSE '' END, count(*), 0
    {TO_HERE} GROUP BY 1, 2, 3, 4 {_ADD}
"""
_MEASURE: Final = f"""
    INSERT INTO plans_counter AS c (action, word, target, status, value, seconds)
    SELECT '{APPROVE_TO_SEND}', (%(bounds)s::text[])[1 + width_bucket(waited, %(buckets)s)],
        target, '', count(*), sum(waited)
    FROM (
        SELECT e.target, greatest(
            0, extract(epoch FROM p.first_sent_at - p.approved_at)::float8) AS waited
        FROM (SELECT e.target, e.intent_id, e.plan_id {TO_HERE}
            AND e.action = '{Action.ATTEMPT_STARTED}' AND e.details ->> 'number' = '1') AS e
        JOIN plans_plan AS p ON p.intent_id = e.intent_id AND p.plan_id = e.plan_id
        WHERE p.approved_at IS NOT NULL AND p.first_sent_at IS NOT NULL
    ) AS sends GROUP BY 2, 3 {_ADD}
"""
_READ: Final = "SELECT action, word, target, status, value, seconds FROM plans_counter"


def count_all(most: int = BATCH) -> int:
    """Fold what is new, up to ROUNDS pages of `most` events; how many events that was."""
    events = 0
    for _ in range(ROUNDS):
        folded = count_page(most)
        events += folded
        if folded < most:
            break
    return events


def count_page(most: int = BATCH) -> int:
    """Fold one page of events; 0 when there is none, or while another process is at it."""
    CountedUpTo.objects.bulk_create([CountedUpTo()], ignore_conflicts=True)
    with transaction.atomic(), connection.cursor() as cursor:
        here = CountedUpTo.objects.select_for_update(skip_locked=True).first()
        if here is None:
            return 0
        page = next_page(cursor, Here(here.era, here.xid, here.event_id), most)
        if page is None:
            return 0
        _fold(cursor, page.place)
        CountedUpTo.objects.update(**asdict(page.end))
        return page.events


def _fold(cursor: Any, page: dict[str, int]) -> None:
    cursor.execute(_COUNT, page)
    cursor.execute(_MEASURE, page | {"bounds": list(BOUNDS), "buckets": list(BUCKETS)})


def counted() -> list[tuple[str, str, str, str, int, float]]:
    """Every counter: action, word, target, status, how often, seconds."""
    with connection.cursor() as cursor:
        cursor.execute(_READ)
        return list(cursor.fetchall())

"""Walking the trail page by page: each event once, in its order, below the snapshot's horizon.

Above the horizon a transaction may still commit with a smaller number than a row that is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from audit import eras

# What a statement over a page has in its FROM and WHERE; its parameters are `Page.place`.
TO_HERE: Final = """
    FROM audit_event AS e
    WHERE e.era = %(era)s AND (e.xid, e.id) > (%(xid)s, %(id)s)
        AND (e.xid, e.id) <= (%(to_xid)s, %(to_id)s)
"""
_BELOW_THE_HORIZON: Final = f"""e.xid < CASE WHEN %(old)s THEN {2**63 - 1}
    ELSE pg_snapshot_xmin(pg_current_snapshot())::text::bigint END"""
_END: Final = f"""
    SELECT xid, id, count(*) OVER () FROM (
        SELECT e.xid, e.id FROM audit_event AS e
        WHERE e.era = %(era)s AND (e.xid, e.id) > (%(xid)s, %(id)s) AND {_BELOW_THE_HORIZON}
        ORDER BY e.xid, e.id LIMIT %(most)s
    ) AS page ORDER BY xid DESC, id DESC LIMIT 1
"""
_NEWEST: Final = f"""
    SELECT e.xid, e.id FROM audit_event AS e WHERE e.era = %(era)s AND {_BELOW_THE_HORIZON}
    ORDER BY e.xid DESC, e.id DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Here:
    """The last event of the trail that a walker has dealt with; the beginning by default."""

    era: int = 0
    xid: int = 0
    event_id: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """The events after one place up to another, of one era."""

    place: dict[str, int]
    events: int

    @property
    def end(self) -> Here:
        return Here(self.place["era"], self.place["to_xid"], self.place["to_id"])


def next_page(cursor: Any, here: Here, most: int) -> Page | None:
    """Up to `most` events after `here`; None when there is nothing new. An era at a time."""
    eras_known = eras.known()
    for era in (number for number in eras_known if number >= here.era):
        xid, event_id = (here.xid, here.event_id) if era == here.era else (0, 0)
        place = {"era": era, "xid": xid, "id": event_id}
        cursor.execute(_END, place | {"most": most, "old": era != eras_known[-1]})
        if end := cursor.fetchone():
            return Page(place | {"to_xid": end[0], "to_id": end[1]}, int(end[2]))
    return None


def newest(cursor: Any) -> Here:
    """Where a walker begins that has no business with the past."""
    era = eras.known()[-1]
    cursor.execute(_NEWEST, {"era": era, "old": False})
    return Here(era, *(cursor.fetchone() or (0, 0)))

"""Rows and seals as they are stored, read for hashing: every column as PostgreSQL's own text.

No conversion lies between the bytes in the table and the bytes that are hashed, and nothing that
somebody wrote into a column (an infinite time, a number beyond every float) can break the reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.db import connection

from audit.offline.formats import FIELDS, Place, Row, SealRecord, place

_MICROSECONDS: Final = "trunc(extract(epoch FROM at) * 1000000)"
_TEXTS: Final = {"at": f"{_MICROSECONDS}::text"}
ROW: Final = ", ".join(_TEXTS.get(name, f"{name}::text") for name in FIELDS)
_HEADER: Final = (
    "number, era, first_xid, first_id, last_xid, last_id, count, total, root, previous, key_id, "
    f"CASE WHEN isfinite(at) THEN {_MICROSECONDS}::bigint ELSE -1 END, hash, signature"
)
_PAGE: Final = f"SELECT {ROW} FROM audit_event WHERE era = %s AND (xid, id) >= (%s, %s)"
# With the table's name: without it the texts of the same names would be ordered.
_ORDERED: Final = " ORDER BY audit_event.xid, audit_event.id LIMIT %s"
BEGINNING: Final = (-(2**63), -(2**63))
BATCH: Final = 1_000


def rows_page(begin: Place, limit: int, below_xid: int | None = None) -> list[Row]:
    """Up to `limit` rows of one era from a place on, below an xid, in the trail's order."""
    bounded = below_xid is not None
    query = _PAGE + (" AND xid < %s" if bounded else "") + _ORDERED
    with connection.cursor() as cursor:
        cursor.execute(query, [*begin, *([below_xid] if bounded else []), limit])
        return list(cursor.fetchall())


def behind(here: Place) -> Place:
    """The first place that a row behind this one can have."""
    return here[0], here[1], here[2] + 1


def rows_of_era(begin: Place) -> Iterator[Row]:
    """All rows of one era from a place on, page by page: no cursor is held open."""
    while page := rows_page(begin, BATCH):
        yield from page
        begin = behind(place(page[-1]))


def eras() -> list[int]:
    """Every era that a row says to be of, known or not, in their order."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT era FROM audit_event GROUP BY era UNION SELECT number FROM audit_era ORDER BY 1"
        )
        return [era for (era,) in cursor.fetchall()]


def rows(after: Place | None = None) -> Iterator[Row]:
    """The whole trail, or what of it is behind a place, in its order."""
    for era in eras():
        if after is None or era > after[0]:
            yield from rows_of_era((era, *BEGINNING))
        elif era == after[0]:
            yield from rows_of_era(behind(after))


def seals(after: int = 0) -> Iterator[SealRecord]:
    """All seals behind a number, one at a time: a manifest may be large."""
    while (seal := _one("number > %s ORDER BY number", after)) is not None:
        yield seal
        after = seal.number


def last_seal() -> SealRecord | None:
    """The newest seal, without its manifest."""
    return _one("true ORDER BY number DESC", manifest="''::bytea")


def seal_before(number: int) -> SealRecord | None:
    """The newest seal below a number, without its manifest."""
    return _one("number < %s ORDER BY number DESC", number, manifest="''::bytea")


def seal_reaching(total: int) -> SealRecord | None:
    """The first seal whose total is above a count of events, without its manifest."""
    return _one("total > %s ORDER BY number", total, manifest="''::bytea")


def first_hash() -> str:
    """The hash of the first seal, by which checkpoints name their trail; "" before there is one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT hash FROM audit_seal ORDER BY number LIMIT 1")
        row = cursor.fetchone()
    return str(row[0]) if row else ""


def database() -> str:
    """Which cluster, timeline and database this is."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT audit_place()")
        return str(cursor.fetchone()[0])


def _one(condition: str, *values: int, manifest: str = "manifest") -> SealRecord | None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_HEADER}, {manifest} FROM audit_seal WHERE {condition} LIMIT 1", values
        )
        row = cursor.fetchone()
    return SealRecord(*row) if row else None

"""The sealer: closes what has been written, without ever making a writer wait (L-2)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any, Final

from django.db import connection, transaction

from audit import checkpoints, eras, stored
from audit.failpoints import failpoint
from audit.models import Seal
from audit.offline.formats import GENESIS, Place, Row, SealRecord, entry, merkle_root, place
from audit.signing import signer

# Any number will do, as long as nothing else in this database locks it.
LOCK: Final = 0x5EA15EA1
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MOST_ROWS: Final = 2_000
MOST_SEALS: Final = 50

_MOMENT: Final = """
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
        trunc(extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
        audit_current_era(), current_setting('transaction_isolation')
"""


@dataclass(frozen=True, slots=True)
class Moment:
    """Every transaction below `horizon` has ended; `at` is the database's clock in microseconds."""

    horizon: int
    at: int
    era: int
    isolation: str


def seal_once(most: int = MOST_ROWS) -> SealRecord | None:
    """Close up to `most` rows below the horizon; None when there are none, or another one seals.

    The horizon is read first, then the rows, each with a snapshot of its own (READ COMMITTED):
    whoever wrote below it has ended before the rows are read, so that none can come later.
    """
    eras.check()
    with transaction.atomic():
        if not _locked():
            return None
        moment = _moment()
        last = stored.last_seal()
        rows = _unsealed(last, moment, most)
        if not rows:
            return None
        seal = _sealed(rows, last, moment)
        failpoint("seal.before")
        _store(seal)
        failpoint("seal.inside")
        trail = stored.first_hash()
        database = stored.database()
        transaction.on_commit(partial(checkpoints.publish, seal, trail, database), robust=True)
    return seal


def seal_all(most: int = MOST_ROWS) -> int:
    """Seal until nothing is left, or a while; how many events were closed."""
    events = 0
    for _ in range(MOST_SEALS):
        seal = seal_once(most)
        events += seal.count if seal else 0
        if seal is None or seal.count < most:
            break
    return events


def _locked() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        return bool(cursor.fetchone()[0])


def _moment() -> Moment:
    with connection.cursor() as cursor:
        cursor.execute(_MOMENT)
        moment = Moment(*cursor.fetchone())
    if moment.isolation != "read committed":
        raise RuntimeError("Seals need READ COMMITTED: one snapshot for all would miss rows.")
    return moment


def _unsealed(last: SealRecord | None, moment: Moment, most: int) -> list[Row]:
    """The next rows of one era. Nobody writes to an era that is over, so it has no horizon."""
    for era in eras.known():
        if last and era < last.era:
            continue
        begin: Place = (era, *stored.BEGINNING)
        if last and era == last.era:
            begin = stored.behind(last.last)
        bound = moment.horizon if era == moment.era else None
        if rows := stored.rows_page(begin, most, bound):
            return rows
    return []


def _sealed(rows: list[Row], last: SealRecord | None, moment: Moment) -> SealRecord:
    manifest = b"".join(map(entry, rows))
    era, first_xid, first_id = place(rows[0])
    _, last_xid, last_id = place(rows[-1])
    key = signer()
    seal = SealRecord(
        number=last.number + 1 if last else 1,
        era=era,
        first_xid=first_xid,
        first_id=first_id,
        last_xid=last_xid,
        last_id=last_id,
        count=len(rows),
        total=len(rows) + (last.total if last else 0),
        root=merkle_root(manifest),
        previous=last.hash if last else GENESIS,
        key_id=key.key_id,
        at=moment.at,
        manifest=manifest,
    )
    header = seal.header()
    return replace(seal, hash=sha256(header).hexdigest(), signature=key.sign(header))


def _store(seal: SealRecord) -> None:
    columns: dict[str, Any] = {each.name: getattr(seal, each.name) for each in fields(seal)}
    Seal.objects.create(**columns | {"at": EPOCH + timedelta(microseconds=seal.at)})

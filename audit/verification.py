"""Checks the stored trail against its seals and exported checkpoints (L-3)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.db import connection, transaction

from audit import stored
from audit.offline.formats import SealRecord
from audit.offline.report import Report
from audit.offline.walk import Walk, check_heads
from audit.signing import trusted

# Longer than any honest transaction holds the horizon back; a sealer that is down shows here.
MAX_UNSEALED_SECONDS: Final = 3600.0


def verify(
    checkpoints: Path | None = None,
    *,
    required: bool = False,
    latest: int | None = None,
    max_unsealed_seconds: float = MAX_UNSEALED_SECONDS,
) -> Report:
    """Walk the trail as it is now, in one snapshot; nothing is written and nobody is held up.

    `latest`: only the seals of about so many newest events, taking the seal before them on trust.
    `required`: the file must hold checkpoints of this trail. OSError if it cannot be read.
    """
    # Before the snapshot: what is in the file by now was committed before it was written there.
    size = checkpoints.stat().st_size if checkpoints else 0
    with snapshot():
        after = _seal_to_begin_behind(latest)
        walk = Walk(stored.rows(after.last if after else None), trusted(), after)
        seals = stored.seals(after.number if after else 0)
        report = walk.go(seals, time.time_ns() // 1_000, max_unsealed_seconds)
        trail, database = stored.first_hash(), stored.database()
    report.trail = trail
    if checkpoints:
        lines = _lines(checkpoints, size)
        check_heads(walk, lines, trail=trail, database=database, required=required)
    return report


@contextmanager
def snapshot() -> Iterator[None]:
    """One view of the trail for many reads; inside a transaction, that transaction's."""
    nested = connection.in_atomic_block
    with transaction.atomic():
        if not nested:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _seal_to_begin_behind(latest: int | None) -> SealRecord | None:
    last = stored.last_seal()
    if latest is None or last is None or last.total <= latest:
        return None
    first = stored.seal_reaching(last.total - latest)
    return stored.seal_before(first.number) if first else None


def _lines(path: Path, size: int) -> Iterator[bytes]:
    """The lines that the file had when it was `size` bytes long."""
    with path.open("rb") as file:
        while size > 0 and (line := file.readline()):
            size -= len(line)
            yield line


def checkpoints_file(setting: str | os.PathLike[str] | None) -> Path | None:
    """The file that the sealer itself appends to, if there is one yet."""
    return Path(setting) if setting and Path(setting).exists() else None

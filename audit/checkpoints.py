"""Heads of the chain, signed to stand alone, handed to where nobody can take them back (L-2).

One JSON line for each seal: on stdout, and appended to `AUDIT_CHECKPOINTS_FILE`. Whoever keeps
them elsewhere can later tell that the trail's end was cut off or rewritten, even with the key.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, replace
from pathlib import Path

import structlog
from django.conf import settings

from audit.offline.formats import Head, SealRecord
from audit.signing import signer

log = structlog.get_logger(__name__)
stdout = logging.getLogger("audit.checkpoints.stdout")


def head_of(seal: SealRecord, trail: str, database: str) -> Head:
    """The signed checkpoint of a seal; `count` is that of all events up to it."""
    key = signer()
    head = Head(
        trail=trail,
        place=database,
        era=seal.era,
        number=seal.number,
        hash=seal.hash,
        count=seal.total,
        at=seal.at,
        key_id=key.key_id,
    )
    return replace(head, signature=key.sign(head.header()))


def publish(seal: SealRecord, trail: str, database: str) -> None:
    """After COMMIT: a checkpoint of what may still be rolled back would accuse an honest trail.

    A file that cannot be written is logged: the next checkpoint covers this one too.
    """
    line = json.dumps(asdict(head_of(seal, trail, database)))
    stdout.info("%s", line)
    path = settings.AUDIT_CHECKPOINTS_FILE
    if path is None:
        return
    try:
        append(Path(path), line)
    except OSError as fault:
        log.error("audit.checkpoint_not_written", path=str(path), fault=fault.strerror)


def append(path: Path, line: str) -> None:
    """One write at the end of the file, on a line of its own, whoever else writes."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        # What a full disk cut off stays a line for itself.
        begin = "\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else ""
        os.write(descriptor, f"{begin}{line}\n".encode())
    finally:
        os.close(descriptor)

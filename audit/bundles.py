"""The trail as a bundle of files that a stranger verifies without us (L-3)."""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from django.conf import settings

from audit import stored
from audit.offline.command import FORMAT
from audit.offline.formats import FIELDS, Row, SealRecord
from audit.signing import public_keys
from audit.verification import checkpoints_file, snapshot

VERIFIER = Path(__file__).parent / "offline"


def export(folder: Path) -> dict[str, Any]:
    """Write the bundle into a new or empty folder, in one snapshot; what `bundle.json` then says.

    FileExistsError when the folder holds something: a bundle never mixes with another one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty")
    # Before the snapshot: every checkpoint of the copy is of a seal that the snapshot holds.
    checkpoints = checkpoints_file(settings.AUDIT_CHECKPOINTS_FILE)
    if checkpoints:
        shutil.copyfile(checkpoints, folder / "checkpoints.jsonl")
    with snapshot():
        about = {
            "format": FORMAT,
            "exported_at": time.time_ns() // 1_000,
            "database": stored.database(),
            "trail": stored.first_hash(),
            "keys": {name: base64.b64encode(raw).decode() for name, raw in public_keys().items()},
            "events": _write(folder / "events.jsonl", map(_event, stored.rows())),
            "seals": _write(folder / "seals.jsonl", map(_seal, stored.seals())),
        }
    (folder / "bundle.json").write_text(json.dumps(about, indent=2) + "\n", "utf-8")
    shutil.copytree(VERIFIER, folder / "verifier", ignore=shutil.ignore_patterns("__pycache__"))
    return about


def _write(path: Path, values: Iterable[dict[str, Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for value in values:
            # In ASCII: no character of a value can end a line.
            file.write(json.dumps(value) + "\n")
            count += 1
    return count


def _event(row: Row) -> dict[str, str | None]:
    """Every column as the text that is hashed."""
    return dict(zip(FIELDS, row, strict=True))


def _seal(seal: SealRecord) -> dict[str, Any]:
    values = {each.name: getattr(seal, each.name) for each in fields(seal)}
    return values | {"manifest": base64.b64encode(seal.manifest).decode()}

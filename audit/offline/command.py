"""`python audit/offline BUNDLE`: verify what `manage.py export_audit` wrote (L-3).

Exits 0 when the trail verifies, 1 when it does not (the last line names the first bad row), 2 when
the bundle cannot be read.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .formats import FIELDS, Keys, Row, SealRecord, key_id
from .report import Report
from .walk import Walk, check_heads

FORMAT = "countersign-audit-1"
HOUR = 3600.0


class UnreadableError(Exception):
    """The bundle is not one; the message says where."""


def verify_bundle(bundle: Path, checkpoints: Path | None, given: Sequence[str]) -> Report:
    """Walk the bundle. `given`: names (16 hex digits) or base64 texts of the keys to trust."""
    about = json.loads((bundle / "bundle.json").read_text("utf-8"))
    if about["format"] != FORMAT:
        raise UnreadableError(f"bundle.json: the format is not {FORMAT}")
    public, note = _trusted(about, given)
    rows = (_row(line) for line in _objects(bundle / "events.jsonl"))
    walk = Walk(rows, Keys(public))
    seals = (SealRecord.read(line) for line in _objects(bundle / "seals.jsonl"))
    report = walk.go(seals, int(about["exported_at"]), HOUR)
    report.notes.append(note)
    path = checkpoints or bundle / "checkpoints.jsonl"
    if checkpoints or path.exists():
        with path.open("rb") as lines:
            check_heads(
                walk,
                lines,
                trail=report.trail,
                database=str(about["database"]),
                required=checkpoints is not None,
            )
    return report


def _trusted(about: dict[str, Any], given: Sequence[str]) -> tuple[list[bytes], str]:
    """The keys to trust: the given ones, or all that the bundle itself brings."""
    brought = {key_id(raw): raw for raw in map(base64.b64decode, about["keys"].values())}
    if not given:
        names = ", ".join(brought) or "none"
        return list(brought.values()), (
            f"the keys are the bundle's own ({names}): compare them with those you were given,"
            " or name them with --key"
        )
    public = [
        brought[text] if text in brought else base64.b64decode(text, validate=True)
        for text in given
    ]
    return public, f"trusted keys: {', '.join(map(key_id, public))}"


def _row(values: dict[str, Any]) -> Row:
    row = [values[name] for name in FIELDS]
    if not all(value is None or isinstance(value, str) for value in row):
        raise UnreadableError("events.jsonl: every value of an event is a text or null")
    return row


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            value = json.loads(line)
            if not isinstance(value, dict):
                raise UnreadableError(f"{path.name}, line {number}: not an object")
            yield value


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Verify an exported audit trail.")
    parser.add_argument("bundle", type=Path, help="what manage.py export_audit wrote")
    parser.add_argument("--checkpoints", type=Path, help="checkpoints that you kept yourself")
    parser.add_argument("--key", action="append", default=[], help="a key to trust; repeatable")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(arguments)
    try:
        report = verify_bundle(options.bundle, options.checkpoints, options.key)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UnreadableError) as error:
        print(f"The bundle cannot be read: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        print("\n".join(report.lines()))
    return 0 if report.holds else 1

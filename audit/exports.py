"""The trail as a file: the same filters, batch by batch, as CSV or as JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from django.db import connection

from audit.filters import Filters
from audit.models import Event
from audit.pages import Line, tell

BATCH: Final = 1_000
COLUMNS: Final = (
    "id",
    "at",
    "action",
    "sentence",
    "actor_kind",
    "actor_id",
    "actor",
    "agent",
    "target",
    "operation",
    "plan_id",
    "intent_id",
    "task_id",
    "title",
    "from_status",
    "to_status",
    "ip",
    "request_id",
    "era",
    "xid",
    "details",
)
# A spreadsheet runs a cell that begins so; the wide forms are read as the narrow ones (BI-52).
_FORMULA: Final = (*"=+-@\t\r\n\0", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\u2212")
_SPACES: Final = " \u00a0"


def batches(filters: Filters) -> Iterator[list[Line]]:
    """All matching events from the oldest on, up to the newest one there was at the beginning.

    Pages by id instead of a cursor held open: between two batches no connection is kept, so a
    slow reader holds nothing that others need.
    """
    newest = filters.events().order_by("-id").values_list("id", flat=True).first()
    after = 0
    while newest is not None and after < newest:
        rows = filters.events().filter(id__gt=after, id__lte=newest).order_by("id")[:BATCH]
        lines = tell(list(rows))
        if not connection.in_atomic_block:
            connection.close()
        if not lines:
            return
        after = lines[-1].event.pk
        yield lines


def as_csv(filters: Filters) -> Iterator[str]:
    """RFC 4180 with a header line; every cell is quoted, none of them a formula (BI-52)."""
    yield _row(COLUMNS)
    for lines in batches(filters):
        yield "".join(_row(_cells(line)) for line in lines)


def as_jsonl(filters: Filters) -> Iterator[str]:
    """One object per line, values as they are stored, in ASCII: no character can end a line."""
    for lines in batches(filters):
        yield "".join(json.dumps(_values(line)) + "\n" for line in lines)


FORMATS: Final[dict[str, tuple[str, Callable[[Filters], Iterator[str]]]]] = {
    "csv": ("text/csv; charset=utf-8; header=present", as_csv),
    "jsonl": ("application/jsonl; charset=utf-8", as_jsonl),
}


def _values(line: Line) -> dict[str, Any]:
    event = line.event
    values = {name: getattr(event, name) for name in COLUMNS if hasattr(Event, name)}
    values |= {
        "at": _instant(event.at),
        "sentence": str(line.sentence),
        "actor": event.actor_label,
        "intent_id": str(event.intent_id) if event.intent_id else None,
    }
    return {name: values[name] for name in COLUMNS}


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _cells(line: Line) -> list[str]:
    values = _values(line) | {"details": json.dumps(line.event.details, ensure_ascii=False)}
    return [_cell("" if value is None else str(value)) for value in values.values()]


def _cell(text: str) -> str:
    return f"'{text}" if text.lstrip(_SPACES).startswith(_FORMULA) else text


def _row(cells: Any) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue()

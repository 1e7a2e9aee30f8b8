"""JSON that every reader takes for the same: no name twice, no NaN."""

from __future__ import annotations

import json
from typing import Any


def strict_json(body: bytes) -> Any:
    """Raises ValueError for anything else, RecursionError for what is too deep."""
    return json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(name)

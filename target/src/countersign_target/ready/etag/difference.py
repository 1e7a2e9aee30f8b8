"""Two states of a JSON document, and what lies between them, field by field. Pure.

A field is named by its path: member names joined by `/`, with `~1` and `~0` for `/` and `~` in a
name (RFC 6901 without the first slash). A list is one value. `null` and absent are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

ABSENT: Final[Any] = None

type Document = dict[str, Any]
type Action = dict[str, Any]


def steps(path: str) -> list[str]:
    """The member names of a path."""
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")]


def joined(prefix: str, name: str) -> str:
    """The path of a member below `prefix`."""
    escaped = name.replace("~", "~0").replace("/", "~1")
    return f"{prefix}/{escaped}" if prefix else escaped


def at(document: Mapping[str, Any], path: str) -> Any:
    """The value at a path, or None."""
    value: Any = document
    for step in steps(path):
        if not isinstance(value, Mapping):
            return ABSENT
        value = value.get(step, ABSENT)
    return value


def patch_of(wishes: Mapping[str, Any]) -> Document:
    """The merge patch (RFC 7396) that sets each path to its value; None removes."""
    patch: Document = {}
    for path, value in wishes.items():
        *above, last = steps(path)
        place = patch
        for step in above:
            place = place.setdefault(step, {})
        place[last] = value
    return patch


def merged(document: Any, patch: Any) -> Any:
    """`document` after the merge patch; RFC 7396, section 2. Neither is changed."""
    if not isinstance(patch, Mapping):
        return patch
    result: Document = dict(document) if isinstance(document, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def joined_patches(one: Mapping[str, Any], other: Mapping[str, Any]) -> Document:
    """One merge patch with the members of both; `None` stays, for it removes."""
    both = dict(one)
    for name, value in other.items():
        mine = both.get(name)
        if isinstance(mine, Mapping) and isinstance(value, Mapping):
            both[name] = joined_patches(mine, value)
        else:
            both[name] = value
    return both


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Path and value of everything in a document that is no object with members; no nulls."""
    if isinstance(value, Mapping) and (value or not path):
        found: dict[str, Any] = {}
        for name, each in value.items():
            found |= leaves(each, joined(path, name))
        return found
    return {} if value is None else {path: value}


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1, 1.0 is 1, lists in order, members in any order."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _between(before: Any, after: Any) -> dict[str, tuple[Any, Any]]:
    was, will = leaves(before), leaves(after)
    paths = [*will, *(path for path in was if path not in will)]
    pairs = {path: (was.get(path), will.get(path)) for path in paths}
    return {path: pair for path, pair in pairs.items() if not same(*pair)}


def actions(target: str, before: Document, after: Document) -> list[Action]:
    """The plan's actions, one per field that differs: {op, target, field, from, to}."""
    return [
        {"op": _op(was, will), "target": target, "field": path, "from": was, "to": will}
        for path, (was, will) in _between(before, after).items()
    ]


def _op(was: Any, will: Any) -> str:
    if was is None:
        return "add"
    return "remove" if will is None else "update"


def moved(
    target: str, planned: Document, current: Document, ignored: Collection[str] = ()
) -> list[dict[str, Any]]:
    """What is not as it was planned from: {target, path, planned, current}.

    Fields at or below an `ignored` path (times, counters) are named only when nothing else moved.
    """
    changes = [
        {"target": target, "path": path, "planned": was, "current": now}
        for path, (was, now) in _between(planned, current).items()
    ]
    telling = [change for change in changes if not is_below(str(change["path"]), ignored)]
    return telling or changes


def is_below(path: str, places: Collection[str]) -> bool:
    """Whether a path is one of these places, or inside of one."""
    return any(path == place or path.startswith(f"{place}/") for place in places)


def without(document: Document, places: Collection[str]) -> Document:
    """The document without these places: what a PUT must not send."""
    return _kept(document, "", places)


def _kept(document: Document, path: str, places: Collection[str]) -> Document:
    kept = {name: each for name, each in document.items() if joined(path, name) not in places}
    return {
        name: _kept(each, joined(path, name), places) if isinstance(each, dict) else each
        for name, each in kept.items()
    }

"""JSON as this package reads and writes it: strict, and frozen once it is read."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn, Self

import rfc8785

from countersign_agent.instants import write_instant

type Json = Mapping[str, Json] | tuple[Json, ...] | str | int | float | bool | None


class NotStrict(ValueError):
    """The text is not one JSON text that every reader reads alike."""


def freeze_inputs(inputs: Mapping[str, Any]) -> bytes:
    """The one text of an operation's inputs: RFC 8785, made once and sent byte for byte.

    TypeError or ValueError for what has no such text: a number beyond 2^53 - 1, NaN, bytes, a
    name that is no string.
    """
    if not isinstance(inputs, Mapping):
        raise TypeError("inputs are a mapping of names to values")
    try:
        return rfc8785.dumps(_plain(inputs))
    except rfc8785.CanonicalizationError as error:
        raise ValueError(f"inputs: {error}") from None


def read_object(text: bytes | str) -> dict[str, Any]:
    """A strict JSON object: no duplicate names, NaN or infinity. NotStrict otherwise."""
    try:
        found = _parse(text)
    except (ValueError, RecursionError):
        found = None
    # Outside of the handler: a decoder's error carries the whole text, with a token in it.
    if not isinstance(found, dict):
        raise NotStrict("not a strict JSON object")
    return found


def _parse(text: bytes | str) -> Any:
    exact = text.decode("utf-8", "strict") if isinstance(text, bytes) else text
    return json.loads(exact, object_pairs_hook=_unique, parse_constant=_refuse)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotStrict("a name stands twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise NotStrict("NaN and infinity are no JSON")


class FrozenObject(dict[str, Any]):
    """A JSON object that prints, compares and dumps like the dict it is, and cannot be changed."""

    __slots__ = ()

    def _closed(self, *args: Any, **names: Any) -> NoReturn:
        raise TypeError("an answer cannot be changed; change a copy of it: dict(value)")

    __setitem__ = __delitem__ = __ior__ = _closed
    clear = pop = popitem = setdefault = update = _closed

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, Any]]]:
        # `copy` and `pickle` would fill an empty one item by item.
        return type(self), (dict(self),)


class FrozenArray(tuple[Any, ...]):
    """A JSON array, shown as one; equal to the list and to the tuple of the same items."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(list(self))

    def __eq__(self, other: object) -> bool:
        return tuple(self) == (tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


def frozen(value: Any) -> Any:
    """The same JSON value, and nobody changes it by accident."""
    if isinstance(value, dict):
        return FrozenObject({name: frozen(each) for name, each in value.items()})
    if isinstance(value, list):
        return FrozenArray(frozen(each) for each in value)
    return value


def as_json(value: Any) -> Any:
    """A result of this package as plain JSON values, for a tool's answer or a log."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        shown = [each for each in dataclasses.fields(value) if each.repr]
        return {each.name.rstrip("_"): as_json(getattr(value, each.name)) for each in shown}
    if isinstance(value, datetime):
        return write_instant(value)
    return _plain(value, as_json)


def _plain(value: Any, each: Any = None) -> Any:
    inner = each or _plain
    if isinstance(value, Mapping):
        return {name: inner(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [inner(member) for member in value]
    return value

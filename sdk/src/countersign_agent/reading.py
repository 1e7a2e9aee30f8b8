"""Dataclasses that are read from JSON members by the types of their fields, and written back."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from datetime import datetime
from types import NoneType
from typing import Any, Self

from countersign_agent.documents import frozen
from countersign_agent.errors import UnexpectedAnswer
from countersign_agent.instants import read_instant, write_instant
from countersign_agent.secret import Secret


class Read:
    """A value that is read from members of the same names (`from_` from `from`), by its types."""

    __slots__ = ()

    @classmethod
    def read(cls, members: Any) -> Self:
        """UnexpectedAnswer when something is missing or of another kind."""
        try:
            values = {
                name: read(members[name.rstrip("_")])
                for name, (read, needed) in _readers(cls).items()  # type: ignore[arg-type]
                if needed or name.rstrip("_") in members
            }
        except (KeyError, TypeError, ValueError) as error:
            raise UnexpectedAnswer(f"{cls.__name__}: {type(error).__name__} {error}") from None
        return cls(**values)


type Reader = Callable[[Any], Any]


_KINDS: dict[Any, Reader] = {
    datetime: read_instant,
    Secret: Secret,
    bytes: str.encode,
}


@functools.cache
def _readers(kind: type[Read]) -> dict[str, tuple[Reader, bool]]:
    """For each member how it is read, and whether it has to be there."""
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    return {
        each.name: (_reader(hints[each.name]), _has_no_default(each))
        for each in fields
        if each.init
    }


def _has_no_default(each: dataclasses.Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _reader(hint: Any) -> Reader:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        inner = _reader(next(each for each in typing.get_args(hint) if each is not NoneType))
        return lambda value: None if value is None else inner(value)
    if typing.get_origin(hint) in (tuple, list):
        kind, item = typing.get_origin(hint), _reader(typing.get_args(hint)[0])
        return lambda items: kind(item(each) for each in items)
    if isinstance(hint, type) and issubclass(hint, Read):
        return hint.read
    if hint in _KINDS:
        return _KINDS[hint]
    if hint in (str, int, bool):
        return functools.partial(_exactly, hint)
    return frozen


def _exactly(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{kind.__name__} expected, not {type(value).__name__}")
    return value


def write(value: Any) -> Any:
    """The JSON value that `read` makes the same thing of. It shows secrets: for a store alone."""
    match value:
        case Secret():
            return value.reveal()
        case datetime():
            return write_instant(value)
        case bytes():
            return value.decode()
        case Mapping():
            return {name: write(each) for name, each in value.items()}
        case list() | tuple():
            return [write(each) for each in value]
        case Read():
            kept = [each for each in dataclasses.fields(value) if each.init]  # type: ignore[arg-type]
            return {each.name.rstrip("_"): write(getattr(value, each.name)) for each in kept}
    return value

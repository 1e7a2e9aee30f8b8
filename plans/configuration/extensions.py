"""Tables of the configuration file that other apps own: plans never import them (B-7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from plans.configuration.changes import Change
from plans.configuration.entries import Entry
from plans.configuration.kinds import Kind, known, learn
from plans.configuration.refusals import Refused

type Applier = Callable[[Iterable[Entry], Refused], Iterator[Change]]


@dataclass(frozen=True, slots=True)
class Extension:
    kind: Kind
    apply: Applier


_registered: dict[str, Extension] = {}


def register(kind: Kind, apply: Applier) -> None:
    """Called once by the owning app's `ready()`; its rows are applied after all of ours."""
    if kind.table not in {each.table for each in known()}:
        learn(kind)
    _registered[kind.table] = Extension(kind, apply)


def extensions() -> Iterable[Extension]:
    return _registered.values()

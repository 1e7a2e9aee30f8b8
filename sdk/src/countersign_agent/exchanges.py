"""What goes out in one call, and the three things that can come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. Headers and body may hold secrets: `repr` has neither."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default=NOTHING, repr=False)
    body: bytes | None = field(default=None, repr=False)
    seconds: float = 45.0
    """All the time there is, from the first look-up of the name to the last byte."""
    largest: int = 2**20
    """Bytes of the longest answer that is read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer. Names of headers are lower case; the body may hold a plan token."""

    status: int
    body: bytes = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(default=NOTHING, repr=False)


@dataclass(frozen=True, slots=True)
class NotSent:
    """Proof that not one byte of the request left: it cannot have been carried out."""

    reason: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The request may have arrived, and no complete answer came back: nothing is known."""

    reason: Literal["timeout", "broken-off", "malformed", "too-large"] | str


type Exchange = Answer | NotSent | NoAnswer

"""The nouns of one HTTP call to a target: what goes out, and what can come back.

Kept apart from `plans.gateway` so that `plans.outcomes` can reason about answers without
importing anything that opens a socket or knows Django.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

NotSentReason = Literal["dns", "connect", "tls", "address-blocked", "invalid-request"]
NoAnswerReason = Literal[
    "timeout", "deadline", "reset", "closed", "truncated", "malformed", "too-large"
]


class Revealable(Protocol):
    """A secret that shows itself only when asked (`plans.custody.Secret`)."""

    def reveal(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a target lives and how long we wait for it; seconds, and bytes of a body (T-4)."""

    base_url: str
    internal: bool
    credential: Revealable | str | None = field(default=None, repr=False)
    connect_timeout: float = 5.0
    read_timeout: float = 30.0
    total_timeout: float = 45.0
    answer_cap: int = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """One request: `path` is appended to the endpoint's base URL, `body` goes out untouched."""

    method: str
    path: str
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete HTTP answer. Header names are lower case; `date_skew_seconds` is theirs - ours."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    elapsed_ms: float = 0.0
    date_skew_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class NotSent:
    """Proof that not one byte of the request left: it can never have been applied (T-5)."""

    reason: NotSentReason
    detail: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The request may have arrived and no complete valid answer came back (T-5)."""

    reason: NoAnswerReason
    detail: str
    elapsed_ms: float = 0.0


Exchange = Answer | NotSent | NoAnswer

"""One fault of a target, and what the checks have to say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.conformance.counting import Counting


@dataclass(frozen=True)
class Fault:
    """What is broken, which check catches it, and words that its finding says."""

    target: Callable[[], Counting]
    check: str
    says: str
    also: frozenset[str] = frozenset()
    """Other checks that rightly find it, too."""
    alone: bool = False
    """It takes long: no other check is made."""
    seconds: float = 5.0
    """The longest that a call may take: short for a target that never answers in time."""

"""The counting target with one fault each: the mistakes that owners of targets make."""

from __future__ import annotations

from tests.conformance.faults import (
    commits,
    conflicts,
    contending,
    edge,
    fingerprints,
    hostile,
    planning,
    tokens,
)

FAULTS = (
    *planning.FAULTS,
    *fingerprints.FAULTS,
    *tokens.FAULTS,
    *edge.FAULTS,
    *commits.FAULTS,
    *contending.FAULTS,
    *conflicts.FAULTS,
    *hostile.FAULTS,
)

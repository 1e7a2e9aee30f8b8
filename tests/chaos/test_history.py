"""A short history of every `make chaos`: one seed, some seconds of faults, no invariant broken."""

from __future__ import annotations

from tests.chaos.run import play

SEED = 1
SECONDS = 8.0


def test_no_invariant_breaks_while_everything_else_does() -> None:
    outcome = play(SEED, SECONDS)
    assert outcome.verdict.findings == []
    assert outcome.figures.committed > 0
    assert outcome.figures.faulted > 0

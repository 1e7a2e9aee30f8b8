"""Running the checks against a target of the tests."""

from __future__ import annotations

from collections.abc import Callable, Collection

from countersign_agent.conformance import NAMES, Allowance, HttpWire, Report, Subject, check_target
from countersign_agent.conformance.subject import MoveFailed
from countersign_agent.conformance.wire import Call
from countersign_agent.exchanges import Answer
from countersign_agent.secret import Secret
from tests.conformance.counting import AGENT, APP, Counting
from tests.conformance.serving import listening

INPUTS = b'{"counter":"stock","add":1}'
# The two that wait a second for a plan to expire.
SLOW = frozenset({"expired", "expiry"})


def subject(retention: float | None = 86_400) -> Subject:
    return Subject(
        operation="add",
        inputs=[INPUTS],
        key_retention_seconds=retention,
        short_plans={"Plan-Milliseconds": "50"},
    )


def check(
    target: Counting,
    only: Collection[str] = NAMES,
    *,
    commits: bool = True,
    agent: bool = True,
    moves: bool = True,
    retention: float | None = 86_400,
    seconds: float = 5.0,
    run_seconds: float = 60.0,
) -> Report:
    """The report about a target that listens for the time of the run."""
    with listening(target) as url:
        secret = Secret(AGENT) if agent else None
        wire = HttpWire(url, Secret(APP), secret, seconds=seconds)
        allowance = Allowance(
            commits=commits,
            move=_by(wire, 7) if moves else None,
            restore=_by(wire, -7) if moves else None,
            run_seconds=run_seconds,
        )
        try:
            return check_target("counting", subject(retention), wire, allowance, only)
        finally:
            wire.close()


def _by(wire: HttpWire, number: int) -> Callable[[], None]:
    def move() -> None:
        answer = wire.send(Call("POST", "/move", b'{"by":%d}' % number))
        if not isinstance(answer, Answer) or answer.status != 200:
            raise MoveFailed("the counter did not move")

    return move

"""One stage for a file of outages: its processes and servers are nobody else's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.scripted_target import ScriptedTarget
from tests.journeys.people import Person
from tests.outages.cast import StageAgent
from tests.outages.stage import Stage


@pytest.fixture(scope="module")
def target() -> Iterator[ScriptedTarget]:
    """What billing is, in the test's own process."""
    with ScriptedTarget() as scripted:
        yield scripted


@pytest.fixture(scope="module")
def stage(target: ScriptedTarget) -> Iterator[Stage]:
    """Everything runs when the first test begins."""
    stage = Stage(target)
    try:
        stage.open()
        yield stage
    finally:
        stage.close()


@pytest.fixture(scope="module")
def agent(stage: Stage) -> Iterator[StageAgent]:
    """The support agent."""
    agent = StageAgent(stage)
    yield agent
    agent.close()


@pytest.fixture(scope="module")
def ada(stage: Stage) -> Iterator[Person]:
    """Reviews."""
    ada = Person(stage.credentials, "ada")
    yield ada
    ada.browser.close()

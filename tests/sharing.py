"""How the tests are shared out when several workers run them.

A file's tests stay together. So do those of a folder that starts the whole product once for all of
them: each further worker would start one more, and keep it running to the end.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from xdist.scheduler import LoadFileScheduling

TOGETHER: Final = ("tests/journeys", "tests/agents", "tests/sdk/reviewed")
# Few tests of whole processes each, and long ones.
LONG: Final = ("tests/outages", "tests/chaos", "tests/matrix", "tests/browser", "tests/config")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling | None:
    """Ours only where files stay together anyway."""
    if config.getvalue("dist") != "loadfile":
        return None
    sharing = LoadFileScheduling(config, log)
    sharing._split_scope = _unit
    return sharing


def _unit(nodeid: str) -> str:
    """What stays together with this test: a folder or a file."""
    file = nodeid.split("::", 1)[0]
    return _within(Path(file), TOGETHER) or file


def _within(file: Path, folders: tuple[str, ...]) -> str | None:
    return next((folder for folder in folders if file.is_relative_to(folder)), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order in which `--no-loadscope-reorder` hands them out: what takes long begins first.

    A product mostly waits. Begun last, it would keep the run waiting, too.
    """
    unit_of = {item: _unit(item.nodeid) for item in items}
    tests = Counter(unit_of.values())

    def place(item: pytest.Item) -> tuple[bool, bool, int]:
        unit = unit_of[item]
        long = _within(Path(unit), LONG) is not None
        return unit not in TOGETHER, not long, -tests[unit]

    items.sort(key=place)

"""How the tests are shared out when several workers run them.

A file's tests stay together. So do those of a folder that starts the whole product once for all of
them: each further worker would start one more, and keep it running to the end. A folder that shares
one Chromium is cut in two: more of them at once would only wait for each other.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from xdist.scheduler import LoadFileScheduling

ROOT: Final = Path(__file__).resolve().parents[1]
TOGETHER: Final = ("tests/journeys", "tests/agents", "tests/sdk/reviewed")
IN_TWO: Final = ("tests/browser",)
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
    """What stays together with this test: a folder, half of one, or a file."""
    file = nodeid.split("::", 1)[0]
    if folder := _within(Path(file), IN_TWO):
        return f"{folder}/{_place_in(folder)[Path(file).name] % 2}"
    return _within(Path(file), TOGETHER) or file


@cache
def _place_in(folder: str) -> dict[str, int]:
    files = sorted((ROOT / folder).glob("test_*.py"))
    return {file.name: place for place, file in enumerate(files)}


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

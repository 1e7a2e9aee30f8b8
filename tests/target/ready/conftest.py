"""The API, and an ETag target for each way of settling, all in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.target.ready import etag_files
from tests.target.ready.processes import Customers, Ready, customers

type MakeTarget = Callable[..., Ready]


@pytest.fixture(scope="session")
def api() -> Iterator[Customers]:
    """The customers."""
    with customers() as api:
        yield api


@pytest.fixture(scope="session")
def etag_target(api: Customers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeTarget]:
    """`etag_target(settle_by=…, method=…)`: a running target, one for each set of choices."""
    running: dict[tuple[tuple[str, object], ...], Ready] = {}

    def make(**choices: object) -> Ready:
        name = tuple(sorted(choices.items()))
        if name not in running:
            folder = tmp_path_factory.mktemp("etag")
            running[name] = start_etag_target(api, folder, **choices)
        return running[name]

    yield make
    for target in running.values():
        assert target.stop() == 0


def start_etag_target(api: Customers, folder: Path, **choices: object) -> Ready:
    """One with a store of its own."""
    path = folder / "target.toml"
    path.write_text(etag_files.file(api.url, str(folder / "plans.sqlite3"), **choices))  # type: ignore[arg-type]
    return Ready("etag", path, "change_customer", CUSTOMERS_TOKEN=api.token)

"""The core without a socket, on both stores, and an owner who does as it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from countersign_target import SqliteStore
from countersign_target.postgresql import PostgresStore
from tests.target.core.owner import Owner
from tests.target.crib import Crib


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, new_store: Callable[[str], str]) -> Iterator[Any]:
    address = new_store(request.param)
    if request.param == "sqlite":
        yield SqliteStore(address, busy_seconds=0.3)
    else:
        postgres = PostgresStore(address)
        yield postgres
        postgres.close()


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture
def crib(store: Any, owner: Owner) -> Crib:
    crib = Crib(store, "?" if isinstance(store, SqliteStore) else "%s", owner.operation())
    crib.run("CREATE TABLE IF NOT EXISTS effects (one integer)")
    crib.run("DELETE FROM effects")
    return crib

"""Databases of their own, and one running shop per framework and store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import conninfo, sql

from config import embedded
from tests.target.serving import Shop, running

SERVED = [
    ("alone", "sqlite"),
    ("alone", "postgresql"),
    ("flask", "sqlite"),
    ("fastapi", "postgresql"),
    ("django", "postgresql"),
    ("django", "sqlite"),
]


@pytest.fixture(scope="session")
def postgres_database() -> Iterator[Callable[[], str]]:
    """Makes a new PostgreSQL database at each call."""
    named = os.environ.get("DATABASE_URL") or embedded.Cluster().urls()["postgres"]
    parts = conninfo.conninfo_to_dict(named)
    server = conninfo.make_conninfo(named, dbname="postgres")
    made: list[str] = []

    def make() -> str:
        made.append(f"test_countersign_kit_{uuid4().hex[:12]}")
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(made[-1])))
        who = f"{parts['user']}:{parts.get('password', '')}".rstrip(":")
        return f"postgresql://{who}@{parts['host']}:{parts['port']}/{made[-1]}"

    yield make
    with psycopg.connect(server, autocommit=True) as connection:
        for name in made:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
            connection.execute(drop.format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def new_store(
    postgres_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], str]:
    """The address of a new, empty store of a kind."""

    def make(kind: str) -> str:
        if kind == "postgresql":
            return postgres_database()
        folder: Path = tmp_path_factory.mktemp("store")
        return str(folder / "shop.sqlite")

    return make


@pytest.fixture(scope="session", params=SERVED, ids="-".join)
def shop(request: pytest.FixtureRequest, new_store: Callable[[str], str]) -> Iterator[Shop]:
    kind, store = request.param
    with running(kind, new_store(store)) as shop:
        yield shop


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def lone_shop(request: pytest.FixtureRequest, new_store: Callable[[str], str]) -> Iterator[Shop]:
    """The kit's own server, on each store."""
    with running("alone", new_store(request.param)) as shop:
        yield shop

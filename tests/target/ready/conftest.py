"""An API and a database, and the ready targets on them, in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.target.ready import etag_files, postgres_files
from tests.target.ready.processes import Accounts, Customers, Ready, customers, new_database

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


@pytest.fixture(scope="session")
def accounts_url() -> Iterator[str]:
    """A database of the tests' own server, with the tables of an application in it."""
    with new_database() as url:
        with psycopg.connect(url) as connection:
            connection.execute(postgres_files.TABLES.encode())
        yield url


@pytest.fixture(scope="session")
def sql_target(accounts_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    """The PostgreSQL target with every operation; `target.operation` chooses one."""
    with start_sql_target(accounts_url, tmp_path_factory.mktemp("sql")) as target:
        yield target


def start_sql_target(accounts_url: str, folder: Path, operation: str = "pay") -> Ready:
    """One on the same database."""
    path = folder / "target.toml"
    path.write_text(postgres_files.FULL)
    return Ready("postgres", path, operation, ACCOUNTS_DATABASE_URL=accounts_url)


@pytest.fixture(scope="session")
def accounts(accounts_url: str) -> Iterator[Accounts]:
    """The tables as their owner sees them."""
    with psycopg.connect(accounts_url, autocommit=True, row_factory=dict_row) as connection:
        yield Accounts(connection)

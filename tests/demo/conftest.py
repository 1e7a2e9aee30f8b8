"""The billing target as it runs in the demo: its own process, its own PostgreSQL database."""

import os
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import conninfo, sql

from config import embedded
from tests.demo.billing_process import Target, running


@pytest.fixture(scope="session")
def billing_database_url() -> Iterator[str]:
    """A database that does not exist yet; billing makes it."""
    named = os.environ.get("BILLING_TEST_DATABASE_URL") or os.environ.get("DATABASE_URL")
    server = named or embedded.Cluster().urls()["postgres"]
    server = conninfo.make_conninfo(server, dbname="postgres")
    name = f"test_countersign_billing_{uuid4().hex[:12]}"
    yield conninfo.make_conninfo(server, dbname=name)
    with psycopg.connect(server, autocommit=True) as connection:
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        connection.execute(drop.format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def shared_target(billing_database_url: str) -> Iterator[Target]:
    with running(billing_database_url) as target:
        yield target


@pytest.fixture
def target(shared_target: Target) -> Iterator[Target]:
    """The running billing, with nothing armed."""
    yield shared_target
    shared_target.app.post("/_faults", json={"commit": "none"})

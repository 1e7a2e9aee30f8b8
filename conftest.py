"""Every test runs on a real PostgreSQL and Valkey, embedded unless the environment names some.

Each process that runs tests has a pair of servers for itself, in a numbered place of `.demo/test/`:
other runs and parallel workers can neither hold back its seals, nor answer its doorbells, nor see
its restarts. A demo that is running stays untouched.
"""

import fcntl
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import django
import psycopg
import pytest
from psycopg import sql

from config import embedded

ROOT = Path(__file__).resolve().parent
TESTS = ROOT / "tests"
PLACES = ROOT / ".demo" / "test"
DATABASE_PREFIX = "test_countersign_"
# Registered here, so that every folder of tests has the same browser.
pytest_plugins = ["tests.chromium", "tests.sharing"]


def _take_place() -> tuple[Path, IO[str]]:
    """The first place that no living process holds, and the file that holds it."""
    for number in itertools.count():
        home = PLACES / str(number)
        home.mkdir(parents=True, exist_ok=True)
        held = (home / "held").open("w")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.close()
        else:
            return home, held
    raise AssertionError("numbers do not end")


def _start_servers() -> None:
    """Start them, and drop the databases of a run that was killed here."""
    cluster = embedded.start_needed(durable=False)
    if "postgres" not in embedded.needed():
        return
    with psycopg.connect(cluster.urls()["postgres"], autocommit=True) as connection:
        for (name,) in connection.execute("SELECT datname FROM pg_database").fetchall():
            if name.startswith(DATABASE_PREFIX):
                drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
                connection.execute(drop.format(sql.Identifier(name)))


if "DJANGO_SETTINGS_MODULE" in os.environ:
    pytest.exit("Unset DJANGO_SETTINGS_MODULE: tests choose their servers before settings.", 1)
HOME, HELD = _take_place()
os.environ["COUNTERSIGN_HOME"] = str(HOME)
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
# Apart from other runs on the same real server. pytest-django appends the worker's name.
os.environ["TEST_DATABASE_NAME"] = f"{DATABASE_PREFIX}{os.getpid()}"
# A pool that keeps no idle connections lets a test database be dropped at any time.
os.environ.setdefault("DATABASE_POOL_MIN", "0")
django.setup()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Start this process's servers, unless it only hands tests to workers."""
    if session.config.getoption("numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        # Workers that inherit it would read the settings before they have a place.
        del os.environ["DJANGO_SETTINGS_MODULE"]
        return
    address = embedded.Cluster().urls()
    _start_servers()
    if embedded.Cluster().urls() != address:
        pytest.exit("Another program took the port of this place's server: run again.", 1)


def pytest_unconfigure() -> None:
    """Whatever ended the run."""
    embedded.Cluster().stop()
    HELD.close()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """At the end, cut what threads and child processes left open: it would keep the database."""
    yield
    from django.db import connection  # settings exist only after the servers do

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

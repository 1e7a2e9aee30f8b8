"""Every test runs on a real PostgreSQL and Valkey, embedded unless the environment names some.

Any number of test runs and their parallel workers share one pair of servers in `.demo/test/`, apart
from a demo that may be running. Each run has databases of its own; the last one out stops the pair.
"""

import contextlib
import fcntl
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
WORKER = os.environ.get("PYTEST_XDIST_WORKER")
DATABASE_PREFIX = "test_countersign_"
REDIS_DATABASES = 4096


def _join(home: Path) -> IO[str]:
    """Hold the home's `users` file for as long as this run lasts; the first one in cleans up."""
    home.mkdir(parents=True, exist_ok=True)
    users = (home / "users").open("w")
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass
    else:
        embedded.start_needed(durable=False)
        _drop_leftovers()
    fcntl.flock(users, fcntl.LOCK_SH)
    embedded.start_needed(durable=False)
    return users


def _drop_leftovers() -> None:
    """Databases of runs that were killed. Only on our own server: elsewhere they may be others'."""
    if "postgres" not in embedded.needed():
        return
    with psycopg.connect(embedded.Cluster().urls()["postgres"], autocommit=True) as connection:
        names = connection.execute("SELECT datname FROM pg_database").fetchall()
        for (name,) in names:
            if name.startswith(DATABASE_PREFIX):
                connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))


def _leave(users: IO[str]) -> None:
    """Stop the servers if nobody else uses them; whoever joins meanwhile waits for the file."""
    with users, contextlib.suppress(BlockingIOError):
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        embedded.Cluster().stop()


def _point_at_servers() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    run = os.environ.setdefault("COUNTERSIGN_TEST_RUN", str(os.getpid()))
    # pytest-django appends the worker's name.
    os.environ["TEST_DATABASE_NAME"] = f"{DATABASE_PREFIX}{run}"
    # A pool that keeps no idle connections lets a test database be dropped at any time.
    os.environ.setdefault("DATABASE_POOL_MIN", "0")
    os.environ.setdefault("STATIC_AUTOREFRESH", "1")
    if "valkey" in embedded.needed():
        # One numbered database per process, so that no worker answers another one's doorbell.
        address = embedded.Cluster().urls()["valkey"].rpartition("/")[0]
        os.environ["REDIS_URL"] = f"{address}/{os.getpid() % REDIS_DATABASES}"


if WORKER is None:
    os.environ.setdefault("COUNTERSIGN_HOME", str(ROOT / ".demo" / "test"))
    RUN = _join(embedded.home_folder())
_point_at_servers()
django.setup()


def pytest_unconfigure() -> None:
    if WORKER is None:
        _leave(RUN)


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

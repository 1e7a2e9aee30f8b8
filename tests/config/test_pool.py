"""A pool whose server went away: noticed at once, for all of its connections at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from psycopg_pool import ConnectionPool

from config import pool as wiring

pytestmark = pytest.mark.django_db


def address() -> str:
    parts = connection.settings_dict
    return "postgresql://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**parts)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectionPool]:
    made = ConnectionPool(
        address(),
        open=True,
        min_size=4,
        max_size=4,
        timeout=5,
        check=wiring.look,
        reconnect_timeout=wiring.RECONNECT_SECONDS,
        kwargs={"autocommit": True},
    )
    monkeypatch.setattr(wiring, "connections", {"default": type("Wrapper", (), {"pool": made})})
    made.wait()
    yield made
    made.close()


def backends(pool: ConnectionPool) -> list[int]:
    held = [pool.getconn() for _ in range(4)]
    pids = [each.info.backend_pid for each in held]
    for each in held:
        pool.putconn(each)
    return pids


def end_all(pids: list[int]) -> None:
    with psycopg.connect(address(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", [pids])
        while other.execute(
            "SELECT 1 FROM pg_stat_activity WHERE pid = ANY(%s)", [pids]
        ).fetchone():
            time.sleep(0.01)


def test_the_settings_use_it() -> None:
    options: Any = settings.DATABASES["default"]["OPTIONS"]
    options = options["pool"]
    assert options["check"] is wiring.look
    assert options["reconnect_timeout"] == wiring.RECONNECT_SECONDS


def test_a_living_connection_is_not_asked(
    pool: ConnectionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(ConnectionPool, "check_connection", asked.append)
    with pool.connection():
        pass
    assert asked == []


def test_dead_connections_are_replaced_together(pool: ConnectionPool) -> None:
    """One by one, with the pool's pauses between them, four would take more than three seconds."""
    dead = backends(pool)
    end_all(dead)
    began = time.monotonic()
    for _ in range(4):
        with pool.connection() as each:
            assert each.info.backend_pid not in dead
            assert each.execute("SELECT 1").fetchone() == (1,)
    assert time.monotonic() - began < 3

"""The kit's process is killed, or there are two: on each store, one effect and one answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest

from tests.target.serving import Shop, running

stores = pytest.mark.parametrize("store", ["sqlite", "postgresql"])


@stores
@pytest.mark.parametrize(("dies", "applied"), [("in apply", False), ("after the commit", True)])
def test_killed_on_the_way_it_applies_once(
    new_store: Callable[[str], str], store: str, dies: str, applied: bool
) -> None:
    address = new_store(store)
    with running("alone", address) as shop:
        plan = shop.plan(3, dies=dies)
        with pytest.raises(httpx.TransportError):
            shop.commit(plan, "key-of-the-killed")
        assert shop.process.wait(timeout=10) != 0
    with running("alone", address) as shop:
        assert shop.read(plan)["status"] in (["applied"] if applied else ["open", "in_progress"])
        assert shop.taken(plan) == ([3] if applied else [])
        if not applied:
            heal(shop)
        answer = shop.commit(plan, "key-of-the-killed")
        assert answer.json()["result"] == {"left": 7}
        assert ("Idempotent-Replayed" in answer.headers) is applied
        assert shop.taken(plan) == [3]


def heal(shop: Shop) -> None:
    """It would die again: now it is well."""
    assert shop.app.post("/_heal", json={}).status_code == 200


@stores
def test_two_processes_at_one_store_apply_once(new_store: Callable[[str], str], store: str) -> None:
    address = new_store(store)
    with running("alone", address) as one, running("alone", address) as two:
        for keys in (1, 8):
            plan = one.plan(3, slow=0.05)
            names = [f"key-{plan['plan_id']}-{n % keys}" for n in range(8)]
            with ThreadPoolExecutor(8) as pool:
                begun = [
                    pool.submit((one, two)[n % 2].commit, plan, key) for n, key in enumerate(names)
                ]
            answers = [each.result() for each in begun]
            fresh = [a for a in answers if a.is_success and "Idempotent-Replayed" not in a.headers]
            assert len(fresh) == 1
            assert two.taken(plan) == [3]


def test_a_running_commit_is_in_progress_in_every_process(
    new_store: Callable[[str], str],
) -> None:
    """On PostgreSQL; SQLite has one writer, so there everybody waits for the end instead."""
    address = new_store("postgresql")
    with running("alone", address) as one, running("alone", address) as two:
        plan = one.plan(3, slow=1.0)
        with ThreadPoolExecutor(1) as pool:
            slow = pool.submit(one.commit, plan, "key-of-the-slow")
            for _ in range(200):
                if two.read(plan)["status"] == "in_progress":
                    break
                threading.Event().wait(0.02)
            answer = two.commit(plan, "key-of-the-slow")
            assert (answer.status_code, answer.json()["code"]) == (409, "in-progress")
            assert slow.result().status_code == 200
        assert two.read(plan)["status"] == "applied"


@pytest.mark.parametrize("kind", ["alone", "django"])
def test_a_database_that_dies_in_between_is_told_and_survived(
    new_store: Callable[[str], str], kind: str
) -> None:
    with running(kind, new_store("postgresql")) as shop:
        plan = shop.plan(3, dies="by its database")
        first = shop.commit(plan, "key-of-the-cut")
        assert (first.status_code, first.json()["code"]) == (503, "store-away")
        assert first.headers["Retry-After"] == "1"
        heal(shop)
        assert shop.commit(plan, "key-of-the-cut").status_code == 200
        assert shop.taken(plan) == [3]


@stores
def test_it_ends_at_once_when_it_is_told_to(new_store: Callable[[str], str], store: str) -> None:
    with running("alone", new_store(store)) as shop:
        shop.plan(3)
        shop.process.terminate()
        assert shop.process.wait(timeout=4) == 0


def test_connections_that_died_in_the_pool_are_replaced(new_store: Callable[[str], str]) -> None:
    address = new_store("postgresql")
    with running("alone", address) as shop:
        plan = shop.plan(3)
        with psycopg.connect(address) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        first = shop.commit(plan, "key-of-the-cut")
        assert (first.status_code, first.headers["Retry-After"]) == (503, "1")
        assert shop.commit(plan, "key-of-the-cut").status_code == 200
        assert shop.taken(plan) == [3]

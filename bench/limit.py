"""The physical limit: what must happen at the very least, with nothing around it.

Raw psycopg, one transaction per state change with its audit row, an LPUSH/BRPOP hand-off, and one
keep-alive POST. Every figure of the product is printed as a ratio to this, from the same run.
"""

from __future__ import annotations

import http.client
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from redis import Redis

SCHEMA: Final = """
DROP TABLE IF EXISTS bench_plan, bench_attempt, bench_event;
CREATE TABLE bench_plan (id bigint PRIMARY KEY, status text NOT NULL, body text NOT NULL);
CREATE TABLE bench_attempt (plan bigint, number int, PRIMARY KEY (plan, number));
CREATE TABLE bench_event (
    id bigserial PRIMARY KEY, at timestamptz DEFAULT clock_timestamp(), plan bigint, word text
);
"""
BODY: Final = "x" * 600
DOORBELL: Final = "bench:limit"


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds per decision → first byte, and things per second."""

    decision_p50: float
    decision_p95: float
    submit_1: float
    submit_8: float
    end_to_end: float


def _change(connection: psycopg.Connection[Any], plan: int, word: str) -> None:
    with connection.transaction():
        connection.execute("UPDATE bench_plan SET status = %s WHERE id = %s", (word, plan))
        _event(connection, plan, word)


def _event(connection: psycopg.Connection[Any], plan: int, word: str) -> None:
    connection.execute("INSERT INTO bench_event (plan, word) VALUES (%s, %s)", (plan, word))


def _submit(connection: psycopg.Connection[Any], plan: int) -> None:
    with connection.transaction():
        connection.execute(
            "INSERT INTO bench_plan (id, status, body) VALUES (%s, 'pending', %s)", (plan, BODY)
        )
        _event(connection, plan, "submitted")


class Committer(threading.Thread):
    """The other end of the hand-off: attempt row, POST, result row."""

    def __init__(self, database: str, redis: str, port: int, done: Callable[[int], None]) -> None:
        super().__init__(daemon=True)
        self.connection = psycopg.connect(database, autocommit=True)
        self.redis = Redis.from_url(redis, socket_timeout=30)
        self.http = http.client.HTTPConnection("127.0.0.1", port)
        self.done = done
        self.sent: dict[int, int] = {}

    def run(self) -> None:
        while True:
            popped = self.redis.brpop([DOORBELL], timeout=20)
            if popped is None or popped[1] == b"stop":
                return
            self._commit(int(popped[1]))

    def _commit(self, plan: int) -> None:
        with self.connection.transaction():
            self.connection.execute("INSERT INTO bench_attempt VALUES (%s, 1)", (plan,))
            _event(self.connection, plan, "attempt")
        self.sent[plan] = time.monotonic_ns()
        headers = {"Plan-Id": str(plan), "Content-Type": "application/json"}
        self.http.request("POST", "/commit", BODY[:120], headers)
        self.http.getresponse().read()
        _change(self.connection, plan, "committed")
        self.done(plan)


def measure(database: str, redis: str, port: int, *, decisions: int, submits: int) -> Limits:
    """Run the limit's four figures one after the other against these servers."""
    numbers = itertools.count(1)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(SCHEMA)
        waits = _decisions(connection, database, redis, port, numbers, decisions)
    return Limits(
        decision_p50=quantile(waits, 0.5),
        decision_p95=quantile(waits, 0.95),
        submit_1=_throughput(database, numbers, submits, 1),
        submit_8=_throughput(database, numbers, submits, 8),
        end_to_end=_end_to_end(database, redis, port, numbers, decisions),
    )


def _decisions(
    connection: psycopg.Connection[Any],
    database: str,
    redis: str,
    port: int,
    numbers: itertools.count[int],
    count: int,
) -> list[float]:
    bell, finished = Redis.from_url(redis), threading.Semaphore(0)
    worker = Committer(database, redis, port, lambda _: finished.release())
    worker.start()
    waits = []
    for _ in range(count):
        plan = next(numbers)
        _submit(connection, plan)
        began = time.monotonic_ns()
        _change(connection, plan, "approved")
        bell.lpush(DOORBELL, plan)
        finished.acquire()
        waits.append((worker.sent[plan] - began) / 1e9)
    bell.lpush(DOORBELL, "stop")
    worker.join()
    return waits


def _throughput(database: str, numbers: itertools.count[int], count: int, clients: int) -> float:
    def client(share: int) -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            for _ in range(share):
                _submit(connection, next(numbers))

    return timed(count, clients, client)


def _end_to_end(
    database: str, redis: str, port: int, numbers: itertools.count[int], count: int
) -> float:
    """Submit, approve, hand off, commit, result: eight in flight, two committers."""
    done: dict[int, threading.Event] = {}
    workers = [Committer(database, redis, port, lambda p: done[p].set()) for _ in range(2)]
    for worker in workers:
        worker.start()

    def client(share: int) -> None:
        bell = Redis.from_url(redis)
        with psycopg.connect(database, autocommit=True) as connection:
            for _ in range(share):
                plan = next(numbers)
                done[plan] = threading.Event()
                _submit(connection, plan)
                _change(connection, plan, "approved")
                bell.lpush(DOORBELL, plan)
                done[plan].wait()

    rate = timed(count, 8, client)
    bell = Redis.from_url(redis)
    for _ in workers:
        bell.lpush(DOORBELL, "stop")
    for worker in workers:
        worker.join()
    return rate


def timed(count: int, clients: int, client: Callable[[int], None]) -> float:
    """Things per second when `clients` threads share `count` of them."""
    began = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, [count // clients] * clients))
    return (count // clients) * clients / (time.monotonic() - began)


def quantile(values: list[float], share: float) -> float:
    """The value below which this share of them lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

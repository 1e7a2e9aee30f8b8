"""`make bench-queue`: the review page with a thousand plans waiting beside the same with ten."""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import psycopg

from bench.clients import BenchAgent, BenchReviewer, new_plan_id
from bench.stage import PASSWORD, Stage, running

# What issue 6 allows.
MOST_RATIO: Final = 1.5
PATIENCE_SECONDS: Final = 120
# The bench's plans all do the same. Rows of their own are the dearer list.
APART: Final = "UPDATE plans_plan SET likeness = '' WHERE status = 'pending'"
WAITING: Final = "SELECT count(*) FROM plans_plan WHERE status = 'pending'"


class Queue:
    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.ada = BenchReviewer(stage.web_port, PASSWORD)
        self.numbers = itertools.count(time.time_ns() // 1_000_000_000 * 1_000_000)

    def fill(self, count: int) -> None:
        """Let so many more plans wait; each agent submits its share."""
        numbers = [next(self.numbers) for _ in range(count)]
        keys = self.stage.keys

        def submit(share: int) -> None:
            agent = BenchAgent(self.stage.web_port, keys[share])
            for number in numbers[share :: len(keys)]:
                agent.submit(new_plan_id(number))

        with psycopg.connect(self.stage.database_url, autocommit=True) as database:
            wanted = self._waiting(database) + count
            with ThreadPoolExecutor(len(keys)) as pool:
                list(pool.map(submit, range(len(keys))))
            until = time.monotonic() + PATIENCE_SECONDS
            while self._waiting(database) < wanted:
                if time.monotonic() > until:
                    raise SystemExit(f"only {self._waiting(database)} of {wanted} plans wait")
                time.sleep(0.5)
            database.execute("ANALYZE")

    def _waiting(self, database: psycopg.Connection) -> int:
        row = database.execute(WAITING).fetchone()
        return int(row[0]) if row else 0

    def spread(self) -> None:
        with psycopg.connect(self.stage.database_url, autocommit=True) as database:
            database.execute(APART)

    def page(self, pages: int) -> float:
        """Seconds to the end of the page, median; the first ones warm the statements up."""
        ada, took = self.ada.beside(), []
        for _ in range(10 + pages):
            began = time.monotonic()
            ada.opens("/review/")
            took.append(time.monotonic() - began)
        return statistics.median(took[10:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=60)
    options = parser.parse_args()
    with running() as stage:
        queue = Queue(stage)
        queue.fill(10)
        queue.spread()
        few = queue.page(options.pages)
        queue.fill(options.plans - 10)
        alike = queue.page(options.pages)
        queue.spread()
        many = queue.page(options.pages)
    print(f"{'':36}{'ratio':>8}{'median':>12}")
    print(f"{'10 plans wait':36}{1:>7.2f}x{few * 1000:>9.1f} ms")
    for name, took in ((f"{options.plans}, folded", alike), (f"{options.plans}, all apart", many)):
        print(f"{name:36}{took / few:>7.2f}x{took * 1000:>9.1f} ms")
    if many > few * MOST_RATIO:
        raise SystemExit(f"more than {MOST_RATIO}x")


if __name__ == "__main__":
    main()

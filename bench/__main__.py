"""`make bench`: the product beside its physical limit, both in this run; ratios are what counts."""

from __future__ import annotations

import argparse
import itertools
import json
import time
import urllib.request

from bench.clients import BenchAgent, BenchReviewer, new_plan_id
from bench.limit import Limits, measure, quantile, timed
from bench.stage import PASSWORD, Stage, running


class Product:
    """The same four figures, through HTTP as agents and people have it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.ada = BenchReviewer(stage.web_port, PASSWORD)
        self.numbers = itertools.count(time.time_ns() // 1_000_000_000 * 1_000_000)

    def submits(self, count: int, clients: int) -> float:
        """Plans per second, `clients` agents at once."""
        shares = iter(self.stage.keys)

        def client(share: int) -> None:
            agent = BenchAgent(self.stage.web_port, next(shares))
            for _ in range(share):
                agent.submit(new_plan_id(next(self.numbers)))

        return timed(count, clients, client)

    def decisions(self, count: int) -> list[float]:
        """Seconds from the click to the first byte of the commit at the target."""
        agent = BenchAgent(self.stage.web_port, self.stage.keys[0])
        ada, clicks = self.ada.beside(), dict[str, int]()
        for _ in range(count):
            plan_id = new_plan_id(next(self.numbers))
            seen = agent.wait_until(plan_id, "pending", agent.submit(plan_id))
            clicks[plan_id] = ada.approve(plan_id, seen.members["content_digest"])
            agent.wait_until(plan_id, "committed", seen)
        arrivals = self.arrivals()
        return [(arrivals[plan_id] - clicked) / 1e9 for plan_id, clicked in clicks.items()]

    def arrivals(self) -> dict[str, int]:
        url = f"http://127.0.0.1:{self.stage.sink_port}/_arrivals"
        with urllib.request.urlopen(url, timeout=30) as answer:
            found: dict[str, int] = json.load(answer)
        return found

    def end_to_end(self, count: int) -> float:
        """Submit, verify, approve, commit, told: eight in flight."""
        shares = iter(self.stage.keys)

        def client(share: int) -> None:
            agent = BenchAgent(self.stage.web_port, next(shares))
            ada = self.ada.beside()
            for _ in range(share):
                plan_id = new_plan_id(next(self.numbers))
                seen = agent.wait_until(plan_id, "pending", agent.submit(plan_id))
                ada.approve(plan_id, seen.members["content_digest"])
                agent.wait_until(plan_id, "committed", seen)

        return timed(count, 8, client)

    def settle(self) -> None:
        """Let the verifications of a throughput run end before the next figure."""
        agent = BenchAgent(self.stage.web_port, self.stage.keys[0])
        plan_id = new_plan_id(next(self.numbers))
        agent.wait_until(plan_id, "pending", agent.submit(plan_id))
        time.sleep(3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=240)
    parser.add_argument("--submits", type=int, default=800)
    parser.add_argument("--warm-up", type=int, default=400)
    options = parser.parse_args()
    with running() as stage:
        product = Product(stage)
        # Before anything is counted, everybody imports and connects, and PostgreSQL settles in
        # each connection on plans for the statements: it makes five anew before it keeps one.
        product.end_to_end(options.warm_up)
        limit = measure(
            stage.database_url,
            stage.redis_url,
            stage.sink_port,
            decisions=options.decisions,
            submits=options.submits * 4,
        )
        waits = product.decisions(options.decisions)
        end_to_end = product.end_to_end(options.decisions)
        submit_1 = product.submits(options.submits // 2, 1)
        product.settle()
        submit_8 = product.submits(options.submits, 8)
    report(limit, waits, end_to_end, submit_1, submit_8)


def report(
    limit: Limits, waits: list[float], end_to_end: float, submit_1: float, submit_8: float
) -> None:
    """Ratios first; the absolute figures are of this machine and this run only."""
    p50, p95 = quantile(waits, 0.5), quantile(waits, 0.95)
    print(f"{'':36}{'ratio':>8}{'product':>14}{'limit':>14}")
    for name, ours, theirs, unit in (
        ("decision to first byte, median", p50 * 1000, limit.decision_p50 * 1000, "ms"),
        ("decision to first byte, p95", p95 * 1000, limit.decision_p95 * 1000, "ms"),
        ("end to end, 8 in flight", end_to_end, limit.end_to_end, "/s"),
        ("submit, 1 client", submit_1, limit.submit_1, "/s"),
        ("submit, 8 clients", submit_8, limit.submit_8, "/s"),
    ):
        print(f"{name:36}{ours / theirs:>7.2f}x{ours:>11.2f} {unit}{theirs:>11.2f} {unit}")


if __name__ == "__main__":
    main()

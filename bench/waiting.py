"""`make bench-waiting`: a thousand agents wait on one web process while people read pages (A-5).

Half of them wait for their plan, half for their events. What counts is the extra memory, the extra
threads, and the latency of a page beside the same page without them, in this run.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from bench.clients import BenchAgent, BenchReviewer, Refused, new_plan_id
from bench.stage import PASSWORD, Stage, running
from bench.waiters import Crowd, Place

# What issue 4 allows.
MOST_MB: Final = 60
MOST_RATIO: Final = 1.2
SINGLE_CHANGES: Final = 20
# Longer than any wait: everybody's ends, and begins again, while pages are opened.
OVER_SECONDS: Final = 35.0
NEW_AGENTS: Final = """
from django.contrib.auth.models import User
from audit import actors
from plans.configuration.api_keys import create_api_key
from plans.models import Agent
dana = User.objects.get(username="dana")
for number in range({count}):
    agent = Agent.objects.create(name=f"waiting-{{number}}", owner=dana)
    print(create_api_key(agent, actors.OPERATOR).reveal())
"""
# Every plan in one transaction: the worst moment for whoever has to be told.
CHANGE_ALL: Final = """
import time
from django.db import transaction
from audit.actors import CLOCK
from plans.lifecycle import Verb, transition
from plans.models import Plan
with transaction.atomic():
    for pk in list(Plan.objects.open().order_by("pk").values_list("pk", flat=True)):
        transition(Plan.objects.locked_with_intent(pk), Verb.ABANDON, actor=CLOCK)
print("changed", time.monotonic_ns())
"""


@dataclass(frozen=True, slots=True)
class Process:
    """The web process from outside."""

    pid: int

    @property
    def megabytes(self) -> float:
        return self._status("VmRSS") / 1024

    @property
    def threads(self) -> int:
        return self._status("Threads")

    def rest(self) -> None:
        """Come back when it has had next to nothing to do for a second, or after a while."""
        busy, deadline = self._ticks(), time.monotonic() + 10
        while time.monotonic() < deadline:
            time.sleep(1)
            before, busy = busy, self._ticks()
            # A tick is a hundredth of a second; looking at the trail takes some.
            if busy - before < 10:
                return

    def _status(self, name: str) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))

    def _ticks(self) -> int:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])


@dataclass(slots=True)
class Figures:
    """What was measured, in megabytes, threads and seconds."""

    waiters: int
    megabytes: float
    threads: int
    page_without: float
    page_waiting: float
    one_told: float
    first_told: float
    all_told: float


class Bench:
    """One stage, its agents and their plans."""

    def __init__(self, stage: Stage, waiters: int, pages: int) -> None:
        self.stage, self.pages = stage, pages
        self.web = Process(stage.web_pid)
        self.ada = BenchReviewer(stage.web_port, PASSWORD)
        printed = stage.manage("shell", "-v", "0", "-c", NEW_AGENTS.format(count=waiters))
        self.keys = [line for line in printed.split() if line.startswith("cs_")]
        self.plans = [new_plan_id(number) for number in range(1, waiters + 1)]

    def prepare(self) -> list[Place]:
        """A plan for each, verified, and the place from which each waits."""
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self._submit, range(len(self.keys))))
            self._settle()
            places = list(pool.map(self._place, range(len(self.keys))))
        with ThreadPoolExecutor(16) as pool:
            # Every thread that serves requests is there, and warm, before anything is counted.
            list(pool.map(lambda _: self.page_seconds(5), range(16)))
        return places

    def _submit(self, number: int) -> None:
        agent = BenchAgent(self.stage.web_port, self.keys[number])
        agent.submit(self.plans[number])
        agent.http.close()

    def _place(self, number: int) -> Place:
        agent, path = BenchAgent(self.stage.web_port, self.keys[number]), self._path(number)
        place = agent.place(path)
        agent.http.close()
        return place

    def _path(self, number: int) -> str:
        return "/api/v1/events" if number % 2 else f"/api/v1/plans/sink/{self.plans[number]}"

    def _settle(self) -> None:
        query = "SELECT count(*) FROM plans_plan WHERE status = 'verifying'"
        with psycopg.connect(self.stage.database_url, autocommit=True) as database:
            while (database.execute(query).fetchone() or (0,))[0]:
                time.sleep(0.5)

    def page_seconds(self, count: int | None = None) -> list[float]:
        """How long Ada waits for her list, again and again over all waits; or so often at once."""
        every = 0.0 if count else OVER_SECONDS / self.pages
        ada, taken = self.ada.beside(), list[float]()
        for _ in range(count or self.pages):
            began = time.monotonic()
            ada.opens("/review/")
            taken.append(time.monotonic() - began)
            time.sleep(max(0.0, every - taken[-1]))
        ada.http.close()
        return taken

    def change_one(self, number: int) -> int:
        """The instant at which the agent's own request to abandon its plan was answered."""
        agent = BenchAgent(self.stage.web_port, self.keys[number])
        path = f"/api/v1/plans/sink/{self.plans[number]}/abandonment"
        status, text, _ = agent.call("POST", path, b'{"reason":"other"}')
        if status != 200:
            raise Refused(f"abandonment: {status} {text[:300]!r}")
        agent.http.close()
        return time.monotonic_ns()

    def change_all(self) -> int:
        """The instant of the commit."""
        return int(self.stage.manage("shell", "-v", "0", "-c", CHANGE_ALL).split()[-1])


async def measure(bench: Bench) -> Figures:
    places = await asyncio.to_thread(bench.prepare)
    without = await asyncio.to_thread(bench.page_seconds)
    crowd = Crowd(bench.stage.web_port, bench.keys, places)
    megabytes, threads = await gather(bench, crowd)
    waiting = await asyncio.to_thread(bench.page_seconds)
    await crowd.leave()
    await asyncio.to_thread(bench.web.rest)
    without += await asyncio.to_thread(bench.page_seconds)
    await gather(bench, crowd)
    one_told = []
    for number in range(SINGLE_CHANGES):
        changed = await asyncio.to_thread(bench.change_one, number)
        one_told.append((await crowd.told(number) - changed) / 1e9)
    changed = await asyncio.to_thread(bench.change_all)
    told = sorted([await crowd.told(n) for n in range(SINGLE_CHANGES, len(bench.keys))])
    return Figures(
        waiters=len(bench.keys),
        megabytes=megabytes,
        threads=threads,
        page_without=statistics.median(without),
        page_waiting=statistics.median(waiting),
        one_told=statistics.median(one_told),
        first_told=(told[0] - changed) / 1e9,
        all_told=(told[-1] - changed) / 1e9,
    )


async def gather(bench: Bench, crowd: Crowd) -> tuple[float, int]:
    """Let everybody wait; how many megabytes and threads that takes beyond one who waits."""
    # With the first one comes the thread that looks at the trail for all of them.
    crowd.wait(0)
    await asyncio.to_thread(bench.web.rest)
    megabytes, threads = bench.web.megabytes, bench.web.threads
    for number in range(1, len(bench.keys)):
        crowd.wait(number)
    await asyncio.to_thread(bench.web.rest)
    return bench.web.megabytes - megabytes, bench.web.threads - threads


def report(found: Figures) -> None:
    """Figures beside what is allowed; seconds are of this machine and this run only."""
    ratio = found.page_waiting / found.page_without
    print(f"{found.waiters} agents wait on one web process")
    for name, figure, allowed in (
        ("extra memory", f"{found.megabytes:.1f} MB", f"{MOST_MB} MB"),
        ("extra threads", f"{found.threads:+}", "0"),
        ("page, median, beside one without them", f"{ratio:.2f}x", f"{MOST_RATIO}x"),
        ("page, median, without them", f"{found.page_without * 1000:.1f} ms", ""),
        ("one told after its plan changed", f"{found.one_told * 1000:.0f} ms", ""),
        ("first told after all plans changed", f"{found.first_told * 1000:.0f} ms", ""),
        ("last told after all plans changed", f"{found.all_told:.2f} s", ""),
    ):
        print(f"{name:40}{figure:>12}{allowed:>12}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiters", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=150)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with running() as stage:
        report(asyncio.run(measure(Bench(stage, options.waiters, options.pages))))


if __name__ == "__main__":
    main()

"""`make bench-desks`: two hundred desks stand open on one web process while people decide.

What counts is the extra memory and threads, and the latency of a page beside the same page without
them in this run, while nothing happens and while a decision is made every few seconds; and how long
it takes from a decision to the last desk that is told, and that has read the queue anew.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import psycopg

from bench.clients import BenchAgent, BenchReviewer, Seen, new_plan_id
from bench.desk import Room
from bench.stage import PASSWORD, Stage, running
from bench.waiting import Process

PAGES: Final = 100
PAGE_EVERY: Final = 0.1
PENDING: Final = 50
DECISIONS: Final = 10
DECISION_EVERY: Final = 5.0


@dataclass(slots=True)
class Figures:
    """What was measured, in megabytes, numbers and seconds."""

    desks: int
    megabytes: float
    threads: int
    connections: int
    page_without: float
    page_idle: float
    page_busy: float
    first_told: float
    last_told: float
    last_read: float


class Bench:
    """One stage with a queue of plans."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.web = Process(stage.web_pid)
        self.ada = BenchReviewer(stage.web_port, PASSWORD)
        self.agent = BenchAgent(stage.web_port, stage.keys[0])
        self.waiting: list[tuple[str, Seen]] = []

    def prepare(self, count: int) -> None:
        """So many plans that wait for people, and pages that are warm."""
        for number in range(1, count + 1):
            plan_id = new_plan_id(number)
            seen = self.agent.wait_until(plan_id, "pending", self.agent.submit(plan_id))
            self.waiting.append((plan_id, seen))
        with ThreadPoolExecutor(16) as pool:
            # Every thread that serves requests is there before anything is counted.
            list(pool.map(lambda _: self.page_seconds(5), range(16)))

    def page_seconds(self, count: int = PAGES) -> list[float]:
        """How long Ada waits for her list, again and again."""
        ada, taken = self.ada.beside(), list[float]()
        for _ in range(count):
            began = time.monotonic()
            ada.opens("/review/")
            taken.append(time.monotonic() - began)
            time.sleep(max(0.0, PAGE_EVERY - taken[-1]))
        ada.http.close()
        return taken

    def decide(self) -> int:
        """The instant at which Ada approved the next plan, `time.monotonic_ns()`."""
        plan_id, seen = self.waiting.pop()
        twin = self.ada.beside()
        clicked = twin.approve(plan_id, seen.members["content_digest"])
        twin.http.close()
        return clicked

    @property
    def connections(self) -> int:
        """How many the web process holds, of those that the pool may give back."""
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'countersign-web'"
        with psycopg.connect(self.stage.database_url, autocommit=True) as database:
            return int((database.execute(query).fetchone() or (0,))[0])

    @property
    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.ada.cookies.items())


async def measure(bench: Bench, desks: int) -> Figures:
    await asyncio.to_thread(bench.prepare, PENDING)
    without = await asyncio.to_thread(bench.page_seconds)
    room = Room(bench.stage.web_port, bench.cookie)
    # With the first one comes the thread that looks at the trail for all of them.
    await room.open(1)
    await asyncio.to_thread(bench.web.rest)
    before = (bench.web.megabytes, bench.web.threads, bench.connections)
    await room.open(desks - 1)
    await asyncio.to_thread(bench.web.rest)
    after = (bench.web.megabytes, bench.web.threads, bench.connections)
    idle = await asyncio.to_thread(bench.page_seconds)
    told = [await told_of_a_decision(bench, room) for _ in range(DECISIONS)]
    room.reads = True
    busy, read = await while_people_decide(bench, room)
    await room.close()
    await asyncio.to_thread(bench.web.rest)
    without += await asyncio.to_thread(bench.page_seconds)
    return Figures(
        desks=desks,
        megabytes=after[0] - before[0],
        threads=after[1] - before[1],
        connections=after[2] - before[2],
        page_without=statistics.median(without),
        page_idle=statistics.median(idle),
        page_busy=statistics.median(busy),
        first_told=statistics.median(first for first, _ in told),
        last_told=statistics.median(last for _, last in told),
        last_read=statistics.median(read),
    )


async def told_of_a_decision(bench: Bench, room: Room) -> tuple[float, float]:
    """Seconds from the click to the first desk and to the last desk that is told."""
    room.forget()
    clicked = await asyncio.to_thread(bench.decide)
    await room.all_told()
    told = sorted(desk.told_at for desk in room.desks)
    await asyncio.sleep(1)
    return (told[0] - clicked) / 1e9, (told[-1] - clicked) / 1e9


async def while_people_decide(bench: Bench, room: Room) -> tuple[list[float], list[float]]:
    """Pages read meanwhile; from each click to the last desk that shows what came of it."""
    count = int(DECISIONS * DECISION_EVERY / PAGE_EVERY)
    pages = asyncio.ensure_future(asyncio.to_thread(bench.page_seconds, count))
    read = []
    for _ in range(DECISIONS):
        began = time.monotonic()
        room.forget()
        clicked = await asyncio.to_thread(bench.decide)
        await room.all_told()
        await room.all_read()
        read.append((max(desk.read_at for desk in room.desks) - clicked) / 1e9)
        await asyncio.sleep(max(0.0, began + DECISION_EVERY - time.monotonic()))
    return await pages, read


def report(found: Figures) -> None:
    """Seconds are of this machine and this run only; the ratios are what counts."""
    print(f"{found.desks} desks stand open on one web process")
    for name, figure in (
        ("extra memory", f"{found.megabytes:.1f} MB"),
        ("extra threads", f"{found.threads:+}"),
        ("extra database connections", f"{found.connections:+}"),
        (
            "page, beside none, while nothing happens",
            f"{found.page_idle / found.page_without:.2f}x",
        ),
        ("page, beside none, while people decide", f"{found.page_busy / found.page_without:.2f}x"),
        ("page, median, without them", f"{found.page_without * 1000:.1f} ms"),
        ("decision to the first desk told", f"{found.first_told * 1000:.0f} ms"),
        ("decision to the last desk told", f"{found.last_told * 1000:.0f} ms"),
        ("decision to the last desk that shows it", f"{found.last_read:.2f} s"),
    ):
        print(f"{name:45}{figure:>12}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--desks", type=int, default=200)
    options = parser.parse_args()
    with running() as stage:
        report(asyncio.run(measure(Bench(stage), options.desks)))


if __name__ == "__main__":
    main()

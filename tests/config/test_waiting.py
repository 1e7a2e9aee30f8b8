"""Waiting without threads: whoever waits for a change is woken by it, and by little else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from config import waiting
from config.waiting import Waiters
from plans.changes import Look


class Trail:
    """Stands for the audit trail: events by ID, and a horizon that a slow transaction holds."""

    def __init__(self) -> None:
        self.events: dict[int, tuple[str, ...]] = {}
        self.horizon = 0
        self.looks = 0
        self.stops = 0
        self.broken = False

    def look(self, since: int | None) -> Look:
        self.looks += 1
        if self.broken:
            raise ConnectionError
        found = {} if since is None else {k: v for k, v in self.events.items() if k >= since}
        return Look(self.horizon, found)

    def stop(self) -> None:
        self.stops += 1


@pytest.fixture
def trail(monkeypatch: pytest.MonkeyPatch) -> Trail:
    monkeypatch.setattr(waiting, "PERIOD_SECONDS", 0.01)
    monkeypatch.setattr(waiting, "LINGER_SECONDS", 0.3)
    return Trail()


def run(trail: Trail, story: Callable[[Waiters], Awaitable[None]]) -> None:
    async def play() -> None:
        await asyncio.wait_for(story(Waiters(trail.look, trail.stop)), 10)

    asyncio.run(play())


async def once(waiters: Waiters, *keys: str, seconds: float = 5.0, since: float = 1e9) -> float:
    """How long one wait took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    gone: asyncio.Future[None] = loop.create_future()
    await waiters.change(keys, since=began if since == 1e9 else since, seconds=seconds, gone=gone)
    return loop.time() - began


async def settle(waiters: Waiters) -> asyncio.Task[float]:
    """Keep one waiter of another key there, so that the first look is over for the next ones."""
    while True:
        keeper = asyncio.ensure_future(once(waiters, "keeper", seconds=60))
        await asyncio.sleep(0.05)
        if not keeper.done():
            return keeper


def test_the_first_look_wakes_everybody_once(trail: Trail) -> None:
    async def story(waiters: Waiters) -> None:
        assert await once(waiters, "a") < 1

    run(trail, story)


def test_a_change_wakes_its_key_and_no_other(trail: Trail) -> None:
    async def story(waiters: Waiters) -> None:
        await settle(waiters)
        a = asyncio.ensure_future(once(waiters, "a", "x"))
        b = asyncio.ensure_future(once(waiters, "b", seconds=0.3))
        await asyncio.sleep(0.05)
        trail.events[7] = ("x", "y")
        assert await a < 1
        assert await b >= 0.3

    run(trail, story)


def test_an_event_that_commits_late_is_not_missed(trail: Trail) -> None:
    async def story(waiters: Waiters) -> None:
        await settle(waiters)
        trail.events[100] = ("other",)
        a = asyncio.ensure_future(once(waiters, "a"))
        await asyncio.sleep(0.05)
        assert not a.done()
        # Its ID is lower than one that was seen long ago; the horizon stood below both.
        trail.events[3] = ("a",)
        assert await a < 1

    run(trail, story)


def test_an_event_is_told_once(trail: Trail) -> None:
    async def story(waiters: Waiters) -> None:
        await settle(waiters)
        trail.events[7] = ("a",)
        await asyncio.sleep(0.05)
        assert await once(waiters, "a", seconds=0.2) >= 0.2

    run(trail, story)


def test_a_change_between_the_reading_and_the_wait_counts(trail: Trail) -> None:
    async def story(waiters: Waiters) -> None:
        await settle(waiters)
        reading_began = asyncio.get_running_loop().time()
        trail.events[7] = ("a",)
        await asyncio.sleep(0.05)
        assert await once(waiters, "a", since=reading_began) < 0.05

    run(trail, story)


def test_nobody_looks_when_nobody_waits(trail: Trail) -> None:
    async def story(waiters: Waiters) -> None:
        await once(waiters, "a", seconds=0.05)
        await asyncio.sleep(0.5)
        looks = trail.looks
        await asyncio.sleep(0.1)
        assert (trail.looks, trail.stops, len(waiters)) == (looks, 1, 0)
        # And the next one is served by a new poller.
        assert await once(waiters, "a") < 1

    run(trail, story)


def test_whoever_waited_in_vain_knows_it(trail: Trail) -> None:
    """False: nothing happened. Without a look nobody knows, and everybody reads again."""

    async def waited(waiters: Waiters, key: str) -> bool:
        loop = asyncio.get_running_loop()
        gone: asyncio.Future[None] = loop.create_future()
        return await waiters.change([key], since=loop.time(), seconds=0.2, gone=gone)

    async def story(waiters: Waiters) -> None:
        await settle(waiters)
        assert await waited(waiters, "a") is False
        happens = asyncio.ensure_future(waited(waiters, "a"))
        await asyncio.sleep(0.05)
        trail.events[7] = ("a",)
        assert await happens is True
        trail.broken = True
        assert await waited(waiters, "a") is True

    run(trail, story)


def test_a_client_that_goes_is_forgotten(trail: Trail) -> None:
    async def story(waiters: Waiters) -> None:
        await settle(waiters)
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        since = asyncio.get_running_loop().time()
        wait = asyncio.ensure_future(waiters.change(["a"], since=since, seconds=60, gone=gone))
        await asyncio.sleep(0.05)
        assert len(waiters) == 2
        gone.set_result(None)
        await wait
        assert len(waiters) == 1

    run(trail, story)


def test_after_a_gap_everybody_reads_again(trail: Trail) -> None:
    async def story(waiters: Waiters) -> None:
        await settle(waiters)
        a = asyncio.ensure_future(once(waiters, "a"))
        trail.broken = True
        await asyncio.sleep(0.1)
        assert not a.done()
        trail.broken = False
        assert await a < 1

    run(trail, story)

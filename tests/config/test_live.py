"""Desks that listen: what they are told, when they are asked who they are, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from config import live, waiting
from config.asgi import Application
from config.live import PATH
from config.waiting import Waiters
from tests.config.counting_django import Call, Django, Trail

INTENT = "intent:0197"
TARGET = "target:billing"


class Desk(Call):
    """One stream, and what it was told so far."""

    def __init__(self, age: str = "0") -> None:
        super().__init__(path=PATH)
        self.scope["query_string"] = f"age={age}".encode()

    @property
    def told(self) -> str:
        return b"".join(part.get("body", b"") for part in self.sent).decode()

    async def hears(self, text: str) -> None:
        async with asyncio.timeout(3):
            while text not in self.told:
                await asyncio.sleep(0.01)

    def events(self, name: str) -> list[str]:
        parts = self.told.split("\n\n")
        return [part for part in parts if part.startswith(f"event: {name}\n")]


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PERIOD_SECONDS", 0.01)
    monkeypatch.setattr(live, "PAUSE_SECONDS", 0.05)


@asynccontextmanager
async def listening(application: Application, age: str = "0") -> AsyncIterator[Desk]:
    desk = Desk(age)
    stream = asyncio.ensure_future(desk.made_to(application))
    await desk.hears("event: open")
    yield desk
    desk.hang_up()
    await asyncio.wait_for(stream, 3)


def run(django: Django, story: Callable[[Application, Trail], Awaitable[None]]) -> None:
    async def play() -> None:
        trail = Trail()
        waiters = Waiters(trail.look, lambda: None)
        application = Application(django, waiters=waiters, concurrency=4)
        async with asyncio.timeout(20):
            # Somebody listens already: the trail is being looked at.
            async with listening(application) as first:
                await first.hears("event: plan\ndata: *")
                await asyncio.sleep(0.1)
                await story(application, trail)

    asyncio.run(play())


def test_a_desk_is_told_which_plan_something_happened_to() -> None:
    async def story(application: Application, trail: Trail) -> None:
        async with listening(application) as desk:
            await asyncio.sleep(0.1)
            assert not desk.events("queue")
            trail.events[-1] = (INTENT, "agent:a", TARGET)
            await desk.hears("event: plan\ndata: 0197\n\n")
            assert desk.status == 200
            # The same event, now below the horizon of the look, is no news.
            trail.events = {1: trail.events[-1]}
            await asyncio.sleep(0.2)
            assert len(desk.events("queue")) == 1

    run(Django(status=200, key=TARGET), story)


def test_what_happens_elsewhere_is_told_to_nobody() -> None:
    async def story(application: Application, trail: Trail) -> None:
        async with listening(application) as desk:
            trail.events[1] = (INTENT, "target:payroll")
            await asyncio.sleep(0.2)
            assert not desk.events("queue")

    run(Django(status=200, key=TARGET), story)


def test_what_happens_together_is_one_hint() -> None:
    async def story(application: Application, trail: Trail) -> None:
        async with listening(application) as desk:
            for number in range(1, 40):
                trail.events[number] = (f"intent:{number}", TARGET)
            await desk.hears("event: plan\ndata: *\n\n")
            assert len(desk.events("queue")) == 1

    run(Django(status=200, key=TARGET), story)


@pytest.mark.parametrize(
    ("age", "told"), [("0", 0), ("5000", 1), ("", 1), ("-1", 1), ("9" * 99, 1)]
)
def test_a_page_that_was_read_before_a_change_hears_of_it_at_once(age: str, told: int) -> None:
    async def story(application: Application, trail: Trail) -> None:
        trail.events[1] = (INTENT, TARGET)
        await asyncio.sleep(0.2)
        async with listening(application, age) as desk:
            await asyncio.sleep(0.1)
            assert len(desk.events("queue")) == told

    run(Django(status=200, key=TARGET), story)


def test_who_is_signed_out_meanwhile_is_told_so_and_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "CHECK_SECONDS", 0.2)
    django = Django(status=200, key=TARGET)

    async def story(application: Application, trail: Trail) -> None:
        desk = Desk()
        stream = asyncio.ensure_future(desk.made_to(application))
        await desk.hears("event: open")
        django.key, django.status = None, 302
        await asyncio.wait_for(stream, 3)
        trail.events[1] = (INTENT, TARGET)
        assert desk.told.endswith("event: over\ndata: \n\n")
        django.key, django.status = TARGET, 200

    run(django, story)


def test_who_sees_other_targets_now_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "CHECK_SECONDS", 0.2)
    django = Django(status=200, key=TARGET)

    async def story(application: Application, trail: Trail) -> None:
        async with listening(application) as desk:
            django.key = "target:payroll"
            await desk.hears("event: plan\ndata: *")
            trail.events[1] = (INTENT, "target:payroll")
            await desk.hears("event: plan\ndata: 0197")

    run(django, story)


def test_silence_has_a_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "BEAT_SECONDS", 0.05)

    async def story(application: Application, trail: Trail) -> None:
        async with listening(application) as desk:
            await desk.hears("event: beat")

    run(Django(status=200, key=TARGET), story)


@pytest.mark.parametrize(
    ("status", "key", "answered"), [(302, None, 204), (204, None, 204), (200, None, 503)]
)
def test_who_may_not_listen_gets_no_stream(status: int, key: None, answered: int) -> None:
    django = Django(status=200, key=TARGET)

    async def story(application: Application, trail: Trail) -> None:
        django.status, django.key = status, key
        desk = await asyncio.wait_for(Desk().made_to(application), 3)
        assert (desk.status, application.live.desks) == (answered, 1)

    run(django, story)


def test_a_server_that_stops_ends_every_stream() -> None:
    async def story(application: Application, trail: Trail) -> None:
        desk = Desk()
        stream = asyncio.ensure_future(desk.made_to(application))
        await desk.hears("event: open")
        application.live.end()
        await asyncio.wait_for(stream, 3)
        assert desk.sent[-1] == {"type": "http.response.body", "body": b""}

    run(Django(status=200, key=TARGET), story)

"""The server's entry point holds a 304 back while nothing happens."""

from __future__ import annotations

import asyncio

import pytest

from config import renewals
from config.asgi import Application
from tests.config.counting_django import PLAN, Call, Django, Trail, run


def test_a_304_is_held_back_until_the_answer_differs() -> None:
    django = Django()

    async def story(application: Application, trail: Trail) -> None:
        call = asyncio.ensure_future(Call(prefer="wait=10").made_to(application))
        await asyncio.sleep(0.6)
        assert not call.done()
        django.status = 200
        trail.events[1] = ("intent:1",)
        answered = await asyncio.wait_for(call, 1)
        assert answered.status == 200
        assert answered.headers[b"preference-applied"] == b"wait=10"
        assert answered.sent[1]["body"] == b"answer"

    run(django, story)
    assert 2 <= django.runs <= 3


def test_the_wait_ends_with_the_304() -> None:
    django = Django()

    async def story(application: Application, trail: Trail) -> None:
        began = asyncio.get_running_loop().time()
        call = await Call(prefer="wait=1").made_to(application)
        assert 0.95 < asyncio.get_running_loop().time() - began < 1.5
        assert (call.status, call.headers) == (304, {b"preference-applied": b"wait=1"})
        assert len(application.waiters) == 0

    run(django, story)
    # Once for itself, once at the first look; at its end nobody has to read again.
    assert django.runs == 2


def test_who_waited_in_vain_and_asks_again_is_not_read_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    django = Django()

    async def story(application: Application, trail: Trail) -> None:
        async def asks(**headers: str) -> Call:
            words = {"authorization": "Bearer a", "prefer": "wait=1", **headers}
            return await Call(**words).made_to(application)

        await asks()
        runs = django.runs
        again = await asks()
        assert (again.status, again.headers) == (304, {b"preference-applied": b"wait=1"})
        assert django.runs == runs
        # Another's key, or another tag, is another request.
        await asyncio.gather(asks(authorization="Bearer b"), asks(if_none_match='"x"'))
        assert django.runs == runs + 2
        # What happens meanwhile, or in the middle of the wait, is read.
        trail.events[1] = ("intent:1",)
        await asyncio.sleep(0.5)
        django.status = 200
        assert (await asks()).status == 200
        assert django.runs == runs + 3
        monkeypatch.setattr(renewals, "TRUSTED_SECONDS", 0.0)
        django.status = 304
        await asks()
        await asks()
        assert django.runs == runs + 5

    run(django, story)


def test_a_renewed_wait_ends_with_a_change() -> None:
    django = Django()

    async def story(application: Application, trail: Trail) -> None:
        await Call(prefer="wait=1").made_to(application)
        again = asyncio.ensure_future(Call(prefer="wait=10").made_to(application))
        await asyncio.sleep(0.3)
        django.status = 200
        trail.events[1] = ("intent:1",)
        assert (await asyncio.wait_for(again, 1)).status == 200

    run(django, story)
    assert django.runs == 3


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_who_was_told_a_tag_waits_with_it_without_another_look(method: str) -> None:
    django = Django(status=304)
    place = f"https://countersign.test{PLAN}".encode()

    async def story(application: Application, trail: Trail) -> None:
        someone = asyncio.ensure_future(Call(prefer="wait=9").made_to(application))
        await asyncio.sleep(0.3)
        runs = django.runs
        told = Call(path=PLAN if method == "GET" else "/api/v1/plans", authorization="Bearer a")
        told.scope["method"] = method
        django.status = 200 if method == "GET" else 201
        django.headers = [(b"ETag", b'"1"'), (b"Content-Length", b"6"), (b"Location", place)]
        await told.made_to(application)
        headers = {"authorization": "Bearer a", "prefer": "wait=1"}
        waited = await Call(if_none_match='"1"', **headers).made_to(application)
        assert (waited.status, waited.sent[1]["body"]) == (304, b"")
        assert waited.headers == {b"ETag": b'"1"', b"preference-applied": b"wait=1"}
        assert django.runs == runs + 1
        # With another's key it is another question.
        django.status = 304
        await Call(if_none_match='"1"', authorization="Bearer b").made_to(application)
        assert django.runs == runs + 2
        someone.cancel()

    run(django, story)


def test_of_many_answers_the_youngest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewals, "MANY", 3)
    django = Django()

    async def story(application: Application, trail: Trail) -> None:
        someone = asyncio.ensure_future(Call(prefer="wait=9").made_to(application))
        await asyncio.sleep(0.3)
        django.status = 200
        for number in range(5):
            django.headers = [(b"ETag", b'"%d"' % number)]
            await Call().made_to(application)
        django.status, runs = 304, django.runs
        for tag, more in (('"4"', 0), ('"2"', 0), ('"1"', 1)):
            await Call(if_none_match=tag, prefer="wait=1").made_to(application)
            runs += more
            assert django.runs == runs, tag
        someone.cancel()

    run(django, story)


def test_a_change_after_a_tag_was_told_is_read() -> None:
    django = Django()

    async def story(application: Application, trail: Trail) -> None:
        someone = asyncio.ensure_future(Call(prefer="wait=9").made_to(application))
        await asyncio.sleep(0.3)
        django.status, django.headers = 200, [(b"ETag", b'"1"')]
        await Call().made_to(application)
        django.headers = [(b"ETag", b'"2"')]
        trail.events[1] = ("intent:1",)
        await asyncio.sleep(0.5)
        call = await Call(if_none_match='"1"', prefer="wait=9").made_to(application)
        assert (call.status, call.headers[b"ETag"]) == (200, b'"2"')
        await someone

    run(django, story)


def test_a_post_that_waits_looks_for_work_each_time() -> None:
    django = Django(status=304)

    async def story(application: Application, trail: Trail) -> None:
        for _ in range(2):
            call = Call(prefer="wait=1")
            call.scope["method"] = "POST"
            await call.made_to(application)

    run(django, story)
    assert django.runs == 3

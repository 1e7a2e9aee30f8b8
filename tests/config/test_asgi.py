"""The server's entry point, with a Django that only counts."""

from __future__ import annotations

import asyncio

import pytest
from django.core.management.base import SystemCheckError

from config.asgi import Application
from plans.strict_json import MAX_BYTES
from tests.config.counting_django import PLAN, Call, Django, Trail, run


@pytest.mark.parametrize(
    ("status", "key", "prefer"),
    [(304, "intent:1", None), (304, None, "wait=5"), (200, "intent:1", "wait=5")],
)
def test_it_answers_at_once(status: int, key: str | None, prefer: str | None) -> None:
    django = Django(status=status, key=key)

    async def story(application: Application, trail: Trail) -> None:
        headers = {} if prefer is None else {"prefer": prefer}
        call = await asyncio.wait_for(Call(**headers).made_to(application), 0.5)
        assert call.status == status

    run(django, story)
    assert django.runs == 1


def test_a_client_that_hangs_up_is_forgotten() -> None:
    async def story(application: Application, trail: Trail) -> None:
        call = Call(prefer="wait=30")
        made = asyncio.ensure_future(call.made_to(application))
        await asyncio.sleep(0.5)
        assert len(application.waiters) == 1
        call.hang_up()
        await asyncio.wait_for(made, 1)
        assert (call.sent, len(application.waiters)) == ([], 0)

    run(Django(), story)


def test_so_many_run_at_once_and_no_more() -> None:
    django = Django(status=200)

    async def story(application: Application, trail: Trail) -> None:
        await asyncio.gather(*(Call().made_to(application) for _ in range(50)))

    run(django, story)
    assert (django.runs, django.most_at_once) == (50, 4)


@pytest.mark.parametrize(
    ("path", "chunks", "headers", "status"),
    [
        (PLAN, [b"x" * MAX_BYTES], {}, 200),
        (PLAN, [b"x" * MAX_BYTES, b"y"], {}, 413),
        (PLAN, [b"x"] * 10, {}, 200),
        (PLAN, [b"x" * 65_536] * 160, {}, 413),
        (PLAN, [b""], {"content_length": "99999999999999999999"}, 413),
        ("/review/", [b"x" * (MAX_BYTES + 1)], {}, 200),
        ("/review/", [b"x" * 65_536] * 17, {}, 413),
    ],
)  # BI-13
def test_bodies_are_counted(
    path: str, chunks: list[bytes], headers: dict[str, str], status: int
) -> None:
    django = Django(status=200)

    async def story(application: Application, trail: Trail) -> None:
        call = await Call(*chunks, path=path, **headers).made_to(application)
        assert call.status == status
        if status == 413:
            assert call.headers[b"content-type"] == b"application/problem+json"
            assert b'"code":"body-too-large"' in call.sent[1]["body"]

    run(django, story)
    assert django.bodies == ([b"".join(chunks)] if status == 200 else [])


def test_a_client_that_hangs_up_in_mid_body_is_let_go() -> None:
    django = Django()

    async def story(application: Application, trail: Trail) -> None:
        call = Call(b"x", b"y")
        await call.incoming.get()
        await call.incoming.get()
        call.hang_up()
        assert (await call.made_to(application)).sent == []

    run(django, story)
    assert django.runs == 0


@pytest.mark.parametrize(
    "raw", ["/api/v1/plans/billing/pl_1%2Fabandonment", "/api/v1/plans/x%2f", "/api/v1/a%5Cb"]
)
def test_a_hidden_slash_is_no_other_route(raw: str) -> None:  # BI-47
    django = Django()

    async def story(application: Application, trail: Trail) -> None:
        call = await Call(path="/api/v1/plans/billing/pl_1/abandonment", raw=raw).made_to(
            application
        )
        assert call.status == 404

    run(django, story)
    assert django.runs == 0


@pytest.mark.parametrize("error", [None, SystemCheckError("DEBUG is on.")])
def test_an_unsafe_server_does_not_start(error: Exception | None) -> None:
    begun: list[str] = []

    def begin() -> None:
        begun.append("once")
        if error:
            raise error

    async def story(application: Application, trail: Trail) -> None:
        application.begin = begin
        call = Call()
        call.scope["type"] = "lifespan"
        call.incoming = asyncio.Queue()
        call.incoming.put_nowait({"type": "lifespan.startup"})
        call.incoming.put_nowait({"type": "lifespan.shutdown"})
        await call.made_to(application)
        failed = {"type": "lifespan.startup.failed", "message": "DEBUG is on."}
        assert call.sent[0] == (failed if error else {"type": "lifespan.startup.complete"})

    run(Django(), story)
    assert begun == ["once"]


def test_it_speaks_lifespan() -> None:
    async def story(application: Application, trail: Trail) -> None:
        call = Call()
        call.scope["type"] = "lifespan"
        call.incoming = asyncio.Queue()
        call.incoming.put_nowait({"type": "lifespan.startup"})
        call.incoming.put_nowait({"type": "lifespan.shutdown"})
        await call.made_to(application)
        assert [message["type"] for message in call.sent] == [
            "lifespan.startup.complete",
            "lifespan.shutdown.complete",
        ]

    run(Django(), story)

"""The server's entry point, with a Django that only counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.core.management.base import SystemCheckError

from config import renewals
from config.asgi import Application
from config.waiting import Waiters
from plans.changes import SCOPE_KEY, Look
from plans.strict_json import MAX_BYTES

PLAN = "/api/v1/plans/billing/pl_1"


class Django:
    """Answers 304 for a key until told otherwise; keeps what it was given."""

    def __init__(self, *, status: int = 304, key: str | None = "intent:1") -> None:
        self.status = status
        self.key = key
        self.runs = 0
        self.at_once = self.most_at_once = 0
        self.bodies: list[bytes] = []
        self.headers: list[tuple[bytes, bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.runs += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.bodies.append((await receive())["body"])
        await asyncio.sleep(0.001)
        if self.key and SCOPE_KEY in scope:
            scope[SCOPE_KEY].keys.add(self.key)
            scope[SCOPE_KEY].tag_keys.add(self.key)
        headers = list(self.headers)
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"answer"})
        self.at_once -= 1


class Call:
    """One request to the application, and what it answered."""

    def __init__(self, *chunks: bytes, path: str = PLAN, raw: str = "", **headers: str) -> None:
        self.scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": b"",
            "raw_path": (raw or path).encode(),
            "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()],
        }
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        chunks = chunks or (b"",)
        for number, chunk in enumerate(chunks, start=1):
            more = number < len(chunks)
            self.incoming.put_nowait({"type": "http.request", "body": chunk, "more_body": more})
        self.sent: list[dict[str, Any]] = []

    def hang_up(self) -> None:
        self.incoming.put_nowait({"type": "http.disconnect"})

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def made_to(self, application: Application) -> Call:
        await application(self.scope, self.incoming.get, self.send)
        return self

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])


class Trail:
    """Nothing happens until `events` has some."""

    def __init__(self) -> None:
        self.events: dict[int, tuple[str, ...]] = {}

    def look(self, since: int | None) -> Look:
        return Look(0, {} if since is None else dict(self.events))


def run(django: Django, story: Callable[[Application, Trail], Awaitable[None]]) -> None:
    async def play() -> None:
        trail = Trail()
        waiters = Waiters(trail.look, lambda: None)
        await asyncio.wait_for(
            story(Application(django, waiters=waiters, concurrency=4), trail), 20
        )

    asyncio.run(play())


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

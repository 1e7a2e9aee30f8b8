"""Requests that wait for a change: no thread and no database connection each (A-5).

One poller per process looks at the trail, while anybody waits and a little longer, and wakes those
whose keys it finds there: every quarter of a second, and a moment after it is nudged. A request
waits once; a desk listens on and on (`config.live`).
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import structlog

from plans.changes import Look, look, stop_looking

log = structlog.get_logger(__name__)
PERIOD_SECONDS: Final = 0.25
# What happens together is looked at together: an approval, its commit and the answer often are.
GATHER_SECONDS: Final = 0.02
# Who was woken usually waits again at once; a new poller would wake everybody to begin with.
LINGER_SECONDS: Final = 5.0
# No request takes longer between reading its rows and asking to be woken.
REMEMBERED_SECONDS: Final = 60.0
MANY: Final = 5_000


class Ear(asyncio.Event):
    """Set when something happened; `heard`: the keys of the events, none where nobody knows."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: set[str] = set()

    def take(self) -> set[str]:
        """What was heard since it was taken the last time."""
        heard, self.heard = self.heard, set()
        self.clear()
        return heard


class Waiters:
    """Everybody who waits in this process. Used from its event loop alone."""

    def __init__(
        self,
        look: Callable[[int | None], Look] = look,
        stop: Callable[[], None] = stop_looking,
        listen: Callable[[Callable[[], None]], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """`listen` calls back whenever a look is worth while; it is cancelled in the end."""
        self._look = look
        self._stop = stop
        self._listen = listen
        self._nudged = asyncio.Event()
        self._events: dict[str, set[asyncio.Event]] = {}
        self._ears: dict[str, set[Ear]] = {}
        self._poller: asyncio.Task[None] | None = None
        # When the trail is being watched from: what happened before, nobody knows.
        self._watching_since: float | None = None
        self._changed_at: dict[str, float] = {}

    def __len__(self) -> int:
        return len(set().union(*self._events.values()))

    @property
    def watching(self) -> bool:
        """Whether the trail is being looked at, and answers."""
        return self._watching_since is not None

    async def change(
        self, keys: Iterable[str], *, since: float, seconds: float, gone: asyncio.Future[None]
    ) -> bool:
        """Return when something happened under a key, after `seconds`, or when `gone` is done.

        `since` is the loop's time at which the caller began to read what it compares with: a
        change between then and now counts. It may return without a change; never too late.
        False: nothing has happened, so that reading again would find the same.
        """
        keys = set(keys)
        if self._may_have_changed(keys, since):
            return True
        event = asyncio.Event()
        for key in keys:
            self._events.setdefault(key, set()).add(event)
        self._watch()
        woken = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait((woken, gone), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            # While nobody can look, nobody knows.
            return event.is_set() or not self.watching
        finally:
            woken.cancel()
            _drop(self._events, keys, event)

    @contextlib.contextmanager
    def ear(self, keys: Iterable[str], *, since: float) -> Iterator[Ear]:
        """Hear every event under a key from the loop's time `since` on, once, as long as it lasts.

        The ear is set at once, with nothing heard, if something may have happened before it opened.
        """
        keys, ear = set(keys), Ear()
        if self._may_have_changed(keys, since):
            ear.set()
        for key in keys:
            self._ears.setdefault(key, set()).add(ear)
        self._watch()
        try:
            yield ear
        finally:
            _drop(self._ears, keys, ear)

    def _may_have_changed(self, keys: set[str], since: float) -> bool:
        watching = self._watching_since
        if watching is not None and since < watching:
            return True
        return any(self._changed_at.get(key, -1.0) >= since for key in keys)

    def _watch(self) -> None:
        if self._poller is None:
            self._poller = asyncio.ensure_future(self._poll())

    async def _poll(self) -> None:
        thread = ThreadPoolExecutor(1, thread_name_prefix="waiting")
        horizon: int | None = None
        seen: set[int] = set()
        loop = asyncio.get_running_loop()
        needed = loop.time()
        ear = asyncio.ensure_future(self._listen(self._nudged.set)) if self._listen else None
        try:
            while self._events or self._ears or loop.time() < needed + LINGER_SECONDS:
                horizon, seen = await self._look_once(thread, horizon, seen)
                needed = loop.time() if self._events or self._ears else needed
                await self._pause()
        finally:
            if ear is not None:
                ear.cancel()
            self._poller = self._watching_since = None
            self._changed_at.clear()
            thread.submit(self._stop)
            thread.shutdown(wait=False)

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PERIOD_SECONDS):
                await self._nudged.wait()
                await asyncio.sleep(min(GATHER_SECONDS, PERIOD_SECONDS))
        self._nudged.clear()

    async def _look_once(
        self, thread: ThreadPoolExecutor, horizon: int | None, seen: set[int]
    ) -> tuple[int | None, set[int]]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(thread, self._look, horizon)
        except Exception as error:  # whatever it is, those who wait must not die of it
            log.error("cannot look at the trail", error=str(error))
            await loop.run_in_executor(thread, self._stop)
            self._watching_since = None
            return None, set()
        if horizon is None:
            # What happened before this look was seen by nobody: everybody reads again.
            self._watching_since = loop.time()
            self._wake(set(self._events))
            for ear in set().union(*self._ears.values()):
                ear.set()
        else:
            events = found.keys_by_event
            fresh = events.keys() - seen
            # What was told above the horizon is told to feeds again below it, to desks once.
            self._tell(events[pk] for pk in fresh if -pk not in seen)
            self._wake({key for pk in fresh for key in events[pk]})
        return found.horizon, set(found.keys_by_event)

    def _wake(self, keys: set[str]) -> None:
        now = asyncio.get_running_loop().time()
        if len(self._changed_at) > MANY:
            young = {k: at for k, at in self._changed_at.items() if at > now - REMEMBERED_SECONDS}
            self._changed_at = young
        for key in keys:
            self._changed_at[key] = now
            for event in self._events.get(key, ()):
                event.set()

    def _tell(self, events: Iterable[tuple[str, ...]]) -> None:
        for keys in events:
            for ear in set().union(*(self._ears.get(key, ()) for key in keys)):
                ear.heard.update(keys)
                ear.set()


def _drop[E](listening: dict[str, set[E]], keys: set[str], one: E) -> None:
    for key in keys:
        listening[key].discard(one)
        if not listening[key]:
            del listening[key]

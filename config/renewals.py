"""Whoever waited in vain asks the same again: what was read for it still holds (A-5).

A thousand agents that wait renew forty waits a second. Reading their plans again each time would
slow down the pages of people, and would find what the trail has told already: nothing happened.
"""

import asyncio
import hashlib
from typing import Final, Protocol

from config.one_hop import Scope

# A key that was revoked, and whose holder only hears that nothing happened, is looked at by then.
TRUSTED_SECONDS: Final = 60.0
MANY: Final = 5_000


class Read(Protocol):
    """What was read for a request, and when that began (loop time)."""

    read_at: float


class Renewals[R: Read]:
    """What was read for requests that ended their wait in vain. One event loop's own."""

    def __init__(self) -> None:
        self._kept: dict[bytes, R] = {}

    def take(self, scope: Scope) -> R | None:
        """What was read for this very request; None: read now."""
        found = self._kept.pop(_asked(scope), None)
        return found if found and _is_young(found) else None

    def keep(self, scope: Scope, read: R) -> None:
        """Remember it for the next request of the same words by the same caller."""
        if scope["method"] != "GET":
            # A claim looks for work each time: work may be due without an event.
            return
        if len(self._kept) >= MANY:
            self._kept = {asked: kept for asked, kept in self._kept.items() if _is_young(kept)}
        if len(self._kept) < MANY:
            self._kept[_asked(scope)] = read


def _is_young(read: Read) -> bool:
    return read.read_at > asyncio.get_running_loop().time() - TRUSTED_SECONDS


def _asked(scope: Scope) -> bytes:
    """All of the request but how long it wants to wait; with a key in it, so only as a hash."""
    headers = [pair for pair in scope["headers"] if pair[0].lower() != b"prefer"]
    words = (scope["method"], scope["path"], scope["query_string"], sorted(headers))
    return hashlib.blake2b(repr(words).encode(), digest_size=32).digest()

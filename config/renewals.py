"""What a caller will ask next, and what was read for it already and still holds (A-5).

Whoever waited in vain asks the same again, and whoever was told an ETag waits with it. A thousand
agents that wait renew forty waits a second: reading their plans each time would slow down the pages
of people, and would find what the trail has told already: nothing happened.
"""

import asyncio
import hashlib
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

from config.one_hop import Scope

# They do not change what a question without a body is about.
_BESIDE: Final = frozenset({b"prefer", b"if-none-match", b"content-type", b"content-length"})
# A key that was revoked, and whose holder only hears that nothing happened, is looked at by then.
TRUSTED_SECONDS: Final = 60.0
MANY: Final = 5_000


class Read(Protocol):
    """What was read for a request, and when that began (loop time)."""

    read_at: float


class Renewals[R: Read]:
    """What was read, by the question that it will answer. One event loop's own."""

    def __init__(self) -> None:
        self._kept: dict[bytes, R] = {}

    def take(self, scope: Scope) -> R | None:
        """What was read for this very request; None: read now."""
        if scope["method"] != "GET":
            return None
        found = self._kept.pop(_asked(scope, scope["path"], _tags(scope)), None)
        return found if found and _is_young(found) else None

    def keep(self, scope: Scope, read: R) -> None:
        """Remember it for the next request of the same words by the same caller."""
        if scope["method"] == "GET":
            # A claim looks for work each time: work may be due without an event.
            self._keep(_asked(scope, scope["path"], _tags(scope)), read)

    def expect(self, scope: Scope, read: R, *, tag: str, at: str) -> None:
        """Remember it for when the caller asks with this ETag, there or at another address."""
        path = unquote(urlsplit(at).path) if at else scope["path"]
        self._keep(_asked(scope, path, [tag.encode("latin-1")]), read)

    def _keep(self, asked: bytes, read: R) -> None:
        """The oldest stand in front: they go when they are too old, or when there are too many."""
        self._kept.pop(asked, None)
        while self._kept:
            oldest = next(iter(self._kept))
            if len(self._kept) < MANY and _is_young(self._kept[oldest]):
                break
            del self._kept[oldest]
        self._kept[asked] = read


def _is_young(read: Read) -> bool:
    return read.read_at > asyncio.get_running_loop().time() - TRUSTED_SECONDS


def _tags(scope: Scope) -> list[bytes]:
    return [value for name, value in scope["headers"] if name.lower() == b"if-none-match"]


def _asked(scope: Scope, path: str, tags: list[bytes]) -> bytes:
    """A question and who asks it; with a key in it, so only as a hash.

    Not how long the caller wants to wait, nor what stands about the body it does not have.
    """
    headers = [pair for pair in scope["headers"] if pair[0].lower() not in _BESIDE]
    words = (path, scope["query_string"], sorted(headers), tags)
    return hashlib.blake2b(repr(words).encode(), digest_size=32).digest()

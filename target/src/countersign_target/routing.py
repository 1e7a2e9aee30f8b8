"""Addresses: who may call what, and who answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from countersign_target.credentials import Principals
from countersign_target.exchanges import Answer, Request
from countersign_target.problems import Problem

type Handler = Callable[[Request], Answer]


@dataclass(frozen=True)
class Route:
    """One row of the table. `path` like `/invoices/{number}`; `allowed`: `ONLY_APP`, `EITHER`, or
    `ANYONE`. What the braces stand for is in the request's `parts`."""

    method: str
    path: str
    allowed: Principals
    handle: Handler
    pattern: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        pieces = re.split(r"\{([a-z_]+)\}", self.path)
        texts = (
            f"(?P<{piece}>[^/]+)" if number % 2 else re.escape(piece)
            for number, piece in enumerate(pieces)
        )
        object.__setattr__(self, "pattern", re.compile("".join(texts)))


def resolve(routes: Iterable[Route], request: Request) -> tuple[Route, Request]:
    """The route of a request and the request with its parts; 404, or 405 with `Allow`."""
    there = [(each, found) for each in routes if (found := each.pattern.fullmatch(request.path))]
    for route, found in there:
        if route.method == request.method:
            return route, replace(request, parts=found.groupdict())
    if not there:
        raise Problem(404, "not-found", "There is nothing at this address.")
    allowed = ", ".join(sorted({route.method for route, _ in there}))
    raise Problem(405, "method-not-allowed", f"Use {allowed}.").with_headers(Allow=allowed)

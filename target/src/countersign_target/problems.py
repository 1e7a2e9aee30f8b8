"""Refusals, as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from countersign_target.canonical import plain


class Problem(Exception):
    """One refusal: an HTTP status, a `code` that programs branch on, and words for people.

    Raise it in `plan` (404, 422 …) and in `apply`. Further members go out as they are; no member
    and no `detail` may carry a plan token or a credential.
    """

    def __init__(self, status: int, code: str, detail: str, **members: Any) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code
        self.detail = detail
        self.members = plain(members)
        self.headers: Mapping[str, str] = {}

    def with_headers(self, **headers: str) -> Problem:
        """The same refusal with HTTP headers (`Retry_After="2"` becomes `Retry-After: 2`)."""
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self

    def body(self, source: str = "target") -> dict[str, Any]:
        """The members of the problem document of the target `source`."""
        return {
            "type": f"urn:problem:{source}:{self.code}",
            "title": self.code.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            **self.members,
        }


def not_allowed(*errors: tuple[str, str]) -> Problem:
    """422 for well-formed JSON with values that are not allowed: (pointer, what is wrong)."""
    listed = [{"pointer": pointer, "detail": detail} for pointer, detail in errors]
    return Problem(422, "invalid-request", "Some values are not allowed.", errors=listed)


def nothing_to_change(detail: str) -> Problem:
    """422: what is wished for is so already. A re-plan that hears it settles its intent (R-1)."""
    return Problem(422, "nothing-to-change", detail)


@dataclass(frozen=True, slots=True)
class Change:
    """One value that is not what the plan was made from: `object` like `invoice/4412`."""

    path: str
    planned: Any
    current: Any
    object: str | None = None

    def body(self) -> dict[str, Any]:
        """An element of `changed`."""
        named = {} if self.object is None else {"target": self.object}
        return {"path": self.path, **named, "planned": self.planned, "current": self.current}


class Conflict(Problem):
    """409, raised in `apply`: the world is not as it was planned from, and nothing was applied.

    Without `changed` the kit runs `plan` again and names what differs by itself.
    """

    def __init__(
        self,
        changed: Iterable[Change] = (),
        detail: str = "The state is not as it was planned from. Make a new dry run.",
    ) -> None:
        super().__init__(409, "state-changed", detail)
        self.changed = list(changed)


class Later(Problem):
    """503, raised in `plan` or `apply`: certainly nothing was done, the same may come again.

    Nothing is stored: the plan is as open as before. `retry_after` in seconds.
    """

    def __init__(self, detail: str, retry_after: int = 1) -> None:
        super().__init__(503, "try-again", detail)
        self.with_headers(Retry_After=str(retry_after))

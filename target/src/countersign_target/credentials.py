"""Two bearer credentials: the app commits, the agent plans and reads."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Final, Protocol

from countersign_target.problems import Problem

APP: Final = "app"
AGENT: Final = "agent"
type Principals = frozenset[str]
ONLY_APP: Final[Principals] = frozenset({APP})
EITHER: Final[Principals] = frozenset({APP, AGENT})
ANYONE: Final[Principals] = frozenset()
SHORTEST: Final = 8


class Identity(Protocol):
    """Who calls, by the `Authorization` header; write one where you have credentials already."""

    def principal(self, authorization: str | None) -> str | None:
        """`APP`, `AGENT`, or None for nobody that is known."""
        ...


@dataclass(frozen=True)
class Credentials:
    """Two bearer tokens, never shown, not even by `repr`; ValueError for short or equal ones."""

    app: str = field(repr=False)
    agent: str = field(repr=False)

    def __post_init__(self) -> None:
        if self.app == self.agent or min(len(self.app), len(self.agent)) < SHORTEST:
            raise ValueError(f"two different tokens of {SHORTEST} characters or more, please")

    def principal(self, authorization: str | None) -> str | None:
        """Whose token the header carries."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        given = token.strip().encode("utf-8", "replace")
        known = ((APP, self.app), (AGENT, self.agent))
        same = (name for name, one in known if hmac.compare_digest(given, one.encode()))
        return next(same, None)


def admit(identity: Identity, authorization: str | None, allowed: Principals) -> None:
    """401 without a known caller, 403 for the wrong one; nothing where anyone is `allowed`."""
    if allowed == ANYONE:
        return
    principal = identity.principal(authorization)
    if principal is None:
        problem = Problem(401, "unauthenticated", "Send a known bearer token.")
        raise problem.with_headers(WWW_Authenticate="Bearer")
    if principal not in allowed:
        raise Problem(403, "forbidden", f"The {principal}'s token may not do this.")

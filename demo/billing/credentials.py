"""Two bearer credentials: the app's commits, the agent's plans and reads."""

import hmac
from dataclasses import dataclass, field

from .problems import Problem

APP, AGENT = "app", "agent"
Principals = frozenset[str]
ONLY_APP: Principals = frozenset({APP})
EITHER: Principals = frozenset({APP, AGENT})
ANYONE: Principals = frozenset()
SHORTEST = 8


@dataclass(frozen=True)
class Credentials:
    """The two tokens; never shown, not even by `repr`."""

    app: str = field(repr=False)
    agent: str = field(repr=False)

    def __post_init__(self) -> None:
        if self.app == self.agent or min(len(self.app), len(self.agent)) < SHORTEST:
            raise ValueError(f"two different tokens of {SHORTEST} characters or more, please")

    def check(self, header: str | None, allowed: Principals) -> None:
        """401 without a known token, 403 with the wrong one; nothing where anyone is `allowed`."""
        if allowed == ANYONE:
            return
        principal = self._principal(header or "")
        if principal is None:
            problem = Problem(401, "unauthenticated", "Send a known bearer token.")
            raise problem.with_headers(WWW_Authenticate="Bearer")
        if principal not in allowed:
            raise Problem(403, "forbidden", f"The {principal}'s token may not do this.")

    def _principal(self, header: str) -> str | None:
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer":
            return None
        given = token.strip().encode("utf-8", "replace")
        known = ((APP, self.app), (AGENT, self.agent))
        same = (name for name, one in known if hmac.compare_digest(given, one.encode()))
        return next(same, None)

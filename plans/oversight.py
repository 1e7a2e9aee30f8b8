"""The seam to the people who decide. `approvals` registers itself; plans never import it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from plans.models import Agent, Operation, Plan

# Ranks of plans.risk_rank: what comes first in the queue.
RISK_RANK: Final = {"critical": 0, "high": 1, "medium": 2, "low": 3}


@dataclass(frozen=True, slots=True)
class Assessment:
    """What people will see and must satisfy; stored on the plan when it becomes pending."""

    title: str
    asked: str
    risk: str
    policy_version: str
    approvals_required: int
    digest: str
    demands: dict[str, Any] = field(default_factory=dict)
    # The same for plans that do the same to other objects; empty: like no other.
    likeness: str = ""

    def columns(self) -> dict[str, Any]:
        """What of it is stored on the plan."""
        return {
            "title": self.title,
            "asked": self.asked,
            "risk": self.risk,
            "risk_rank": RISK_RANK[self.risk],
            "policy_version": self.policy_version,
            "approvals_required": self.approvals_required,
            "digest": self.digest,
            "demands": self.demands,
            "likeness": self.likeness,
        }


@dataclass(frozen=True, slots=True)
class Wish:
    """What an agent asks for, in its own words; `actions` is None before there is a dry run."""

    agent: Agent
    operation: Operation
    inputs: Mapping[str, Any] = field(repr=False)
    actions: Sequence[Mapping[str, Any]] | None = field(default=None, repr=False)


class Oversight(Protocol):
    def objection_to_wish(self, wish: Wish) -> str | None:
        """Why such a plan can never be approved, in words (B-7); None: it may be submitted."""
        ...

    def assess(self, plan: Plan) -> Assessment:
        """Title, risk and demands from read-back values only (B-10), with the digest (B-2)."""
        ...

    def objection_to_sending(self, plan: Plan) -> str | None:
        """Why the recorded approvals no longer suffice (T-3), in words; None: send."""
        ...

    def last_decisions(self, plans: Iterable[Plan]) -> Mapping[int, dict[str, Any]]:
        """The latest {verdict, note, by, at} by the plan's pk, where there is one: one query."""
        ...


_registered: list[Oversight] = []


def register(oversight: Oversight) -> None:
    """Called once by the deciding app's `ready()`."""
    _registered[:] = [oversight]


def oversight() -> Oversight:
    """The registered oversight. Raises LookupError: nobody decides, so nothing is sent (SEC-28)."""
    if not _registered:
        raise LookupError("no oversight is registered")
    return _registered[0]

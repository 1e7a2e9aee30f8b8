"""What approvals must satisfy: the sum of all policies that match (B-7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from approvals.models import Policy
from approvals.policies.quorum import ANYONE
from plans.canonical import jcs, sha256_hex
from plans.models import Plan
from plans.strict_json import JsonValue

# The version of a plan that no policy matches: one approval of whoever reviews the target.
NO_POLICY: Final = "builtin-1"
_CONTENT: Final = (
    "name",
    "when",
    "require",
    "note_required",
    "step_up",
    "dwell_seconds",
    "deny",
    "raise_risk",
)


@dataclass(frozen=True, slots=True)
class Match:
    """A policy whose demands apply; `unclear`: CEL had no answer; `withheld`: what it reads."""

    policy: Policy
    unclear: str = ""
    withheld: str = ""


@dataclass(frozen=True, slots=True)
class Demands:
    """`seats`: a group's name for each distinct person. Names are those of policies."""

    seats: tuple[str, ...] = (ANYONE,)
    note: bool = False
    step_up: bool = False
    dwell_seconds: int = 0
    expand_first: bool = False
    policies: tuple[str, ...] = ()
    denied_by: tuple[str, ...] = ()
    # [name, reason] of each policy that could not be evaluated, [name, variable] of each that
    # counts as matched because the target does not tell that variable.
    unclear: tuple[tuple[str, str], ...] = ()
    withheld: tuple[tuple[str, str], ...] = ()
    version: str = NO_POLICY

    @property
    def approvals_required(self) -> int:
        return len(self.seats)

    @property
    def groups(self) -> dict[str, int]:
        """Group → number of people, without the seats for anyone."""
        return {g: self.seats.count(g) for g in dict.fromkeys(self.seats) if g != ANYONE}

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """The snapshot that is stored with the plan."""
        return cls.read(plan.demands, plan.approvals_required, plan.policy_version)

    @classmethod
    def read(cls, kept: Mapping[str, Any], approvals_required: int, version: str) -> Self:
        """What `snapshot()` wrote; without a policy, so many approvals of whoever reviews."""
        return cls(
            seats=_seats(kept.get("require", {})) or (ANYONE,) * approvals_required,
            note=kept.get("note", False),
            step_up=kept.get("step_up", False),
            dwell_seconds=kept.get("dwell_seconds", 0),
            expand_first=kept.get("expand_first", False),
            policies=tuple(kept.get("policies", ())),
            denied_by=tuple(kept.get("denied_by", ())),
            unclear=_pairs(kept.get("unclear", ())),
            withheld=_pairs(kept.get("withheld", ())),
            version=version,
        )

    def snapshot(self) -> dict[str, Any]:
        """For the plan's row; empty where no policy matches."""
        if not self.policies:
            return {}
        return {
            "require": self.groups,
            "note": self.note,
            "step_up": self.step_up,
            "dwell_seconds": self.dwell_seconds,
            "expand_first": self.expand_first,
            "policies": list(self.policies),
            "denied_by": list(self.denied_by),
            "unclear": [list(pair) for pair in self.unclear],
            "withheld": [list(pair) for pair in self.withheld],
        }


def added_up(matches: Iterable[Match]) -> Demands:
    """The maximum per group, of dwell and of the rest; at least one person in total (B-7)."""
    found = sorted(matches, key=lambda match: match.policy.name)
    if not found:
        return Demands()
    policies = [match.policy for match in found]
    groups: dict[str, int] = {}
    for wanted in (wanted for policy in policies for wanted in policy.require):
        groups[wanted["group"]] = max(groups.get(wanted["group"], 0), wanted["count"])
    return Demands(
        seats=_seats(groups) or (ANYONE,),
        note=any(policy.note_required for policy in policies),
        step_up=any(policy.step_up for policy in policies),
        dwell_seconds=max(policy.dwell_seconds for policy in policies),
        expand_first=any(policy.expand_first for policy in policies),
        policies=tuple(policy.name for policy in policies),
        denied_by=tuple(policy.name for policy in policies if policy.deny),
        unclear=tuple((m.policy.name, m.unclear) for m in found if m.unclear),
        withheld=tuple((m.policy.name, m.withheld) for m in found if m.withheld),
        version=_version(found),
    )


def _version(matches: Iterable[Match]) -> str:
    """SHA-256 over the content of what matched: another content is another version (B-2)."""
    content: list[JsonValue] = [
        {name: getattr(match.policy, name) for name in _CONTENT}
        | {"unclear": bool(match.unclear), "withheld": match.withheld}
        # A demand that came later: policies without it keep the version that they had.
        | ({"expand_first": True} if match.policy.expand_first else {})
        for match in matches
    ]
    return sha256_hex(jcs(content))


def _seats(groups: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(group for group in sorted(groups) for _ in range(groups[group]))


def _pairs(rows: Iterable[Iterable[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, words) for name, words in rows)

"""What a check says: findings, and what is only worth a look."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from countersign_agent.instants import write_instant

FORMAT: Final = 1


class Look(str):
    """Not against the contract, and yet the product can do more with a target that has it."""

    __slots__ = ()


class Verdict(StrEnum):
    """What came of one check."""

    OK = "ok"
    LOOK = "look"
    WRONG = "wrong"
    NOT_RUN = "not_run"


@dataclass(frozen=True, slots=True)
class Result:
    """One check, in words: what it is, what came of it, why it matters, how to mend it."""

    name: str
    title: str
    verdict: Verdict
    requirement: str
    why: str
    fix: str
    wrong: tuple[str, ...] = ()
    look: tuple[str, ...] = ()
    lacks: str = ""
    """What a check that was not run lacks."""

    def as_json(self) -> dict[str, Any]:
        return {
            "check": self.name,
            "title": self.title,
            "verdict": self.verdict.value,
            "wrong": list(self.wrong),
            "look": list(self.look),
            "not_run": self.lacks or None,
            "requirement": self.requirement,
            "why": self.why,
            "fix": self.fix,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What one run found. All texts are safe to print, and hold no secret."""

    target: str
    operation: str
    started_at: datetime
    seconds: float
    commits: int
    results: tuple[Result, ...] = field(default=())
    stopped: str = ""
    """Why the run could not begin; empty when it did."""
    cut_short: str = ""
    """Why it ended before its last check; empty when it did not."""

    def of(self, verdict: Verdict) -> list[Result]:
        return [each for each in self.results if each.verdict is verdict]

    @property
    def conforms(self) -> bool:
        """Whether nothing was found, as far as it was checked. A run that was cut short: no."""
        return not (self.stopped or self.cut_short or self.of(Verdict.WRONG))

    @property
    def complete(self) -> bool:
        """Whether every check was made."""
        return not self.stopped and not self.of(Verdict.NOT_RUN)

    def as_json(self) -> dict[str, Any]:
        """The report for programs; `format` grows when a member changes its meaning."""
        return {
            "format": FORMAT,
            "target": self.target,
            "operation": self.operation,
            "started_at": write_instant(self.started_at),
            "seconds": round(self.seconds, 2),
            "commits": self.commits,
            "conforms": self.conforms,
            "complete": self.complete,
            "stopped": self.stopped or None,
            "cut_short": self.cut_short or None,
            "counts": {each.value: len(self.of(each)) for each in Verdict},
            "checks": [each.as_json() for each in self.results],
        }

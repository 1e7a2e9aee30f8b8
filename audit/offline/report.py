"""What a verification found, for people and as JSON; what it proves and what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

KEPT: Final = 50

PROVES: Final = (
    "Since it was sealed, no event was edited, deleted, inserted or reordered, unless by somebody"
    " who holds the signing key. No event that a checkpoint covers was cut off or rewritten, even"
    " by somebody who does, as far as the checkpoints were kept out of their reach."
)
DOES_NOT_PROVE: Final = (
    "That an event was true when it was written. What happened to events before they were sealed."
    " Without checkpoints: that the newest seals were not cut off together with their events."
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: edited, deleted, inserted, truncated, forged or unsealed."""

    kind: str
    text: str
    event: int | None = None
    seal: int | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(slots=True)
class Report:
    """What was looked at; it `holds` when nothing was found. Times in microseconds since 1970."""

    findings: list[Finding] = field(default_factory=list)
    found: int = 0
    events: int = 0
    seals: int = 0
    checkpoints: int = 0
    from_seal: int = 1
    trail: str = ""
    sealed_at: int | None = None
    unsealed: int = 0
    unsealed_since: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.found

    def add(self, kind: str, text: str, event: int | None = None, seal: int | None = None) -> None:
        """Count a finding; the first ones are kept."""
        self.found += 1
        if len(self.findings) < KEPT:
            self.findings.append(Finding(kind, text, event, seal))

    def as_json(self) -> dict[str, Any]:
        """The same as data, with what it proves."""
        return {
            "holds": self.holds,
            "first": asdict(self.findings[0]) if self.findings else None,
            **asdict(self),
            "sealed_at": instant(self.sealed_at),
            "unsealed_since": instant(self.unsealed_since),
            "proves": PROVES,
            "does_not_prove": DOES_NOT_PROVE,
        }

    def lines(self, *, limits: bool = True) -> Iterator[str]:
        """For people; the verdict stands in the last line. `limits`: with what it proves."""
        last = instant(self.sealed_at) or "never"
        yield f"{self.events} events under {self.seals} seals; the last seal closed at {last}."
        if self.from_seal > 1:
            yield f"Only from seal {self.from_seal} on was looked at, not what is before it."
        yield f"{self.checkpoints} checkpoints of this trail compared."
        if self.unsealed:
            since = instant(self.unsealed_since)
            yield f"{self.unsealed} events are not sealed yet; the oldest is of {since}."
        yield from (f"Note: {note}" for note in self.notes)
        if limits:
            yield f"It proves: {PROVES}"
            yield f"It does not prove: {DOES_NOT_PROVE}"
        yield from map(str, self.findings[1:])
        if self.found > len(self.findings):
            yield f"{self.found - len(self.findings)} more findings are not listed."
        if self.findings:
            yield f"The audit trail does NOT verify ({self.found} found). First {self.findings[0]}"
        else:
            yield f"The audit trail verifies up to {last}."


def instant(microseconds: int | None) -> str | None:
    """RFC 3339 in UTC; the bare number where no calendar has it."""
    if microseconds is None:
        return None
    try:
        at = datetime.fromtimestamp(microseconds // 1_000_000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(microseconds)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{microseconds % 1_000_000:06d}Z"

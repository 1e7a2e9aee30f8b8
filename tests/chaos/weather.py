"""What a history goes through: which faults, which target, and which bug, if any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from demo.billing.faults import MODES

# 5-faults, invariant 4: three minutes, or the target's deadline and a minute where that is later.
LIVENESS_SECONDS: Final = 180.0


@dataclass(frozen=True, slots=True)
class Weather:
    """Times in seconds. `billing` is SQL for billing's own database: how another target behaves."""

    modes: tuple[str, ...] = tuple(MODES)
    longest_fault: float = 3.0
    blows: bool = True
    agents: int = 3
    reviewers: int = 4
    unknown_deadline: int = 20
    liveness: float = LIVENESS_SECONDS
    billing: str = ""
    # One of tests.chaos.mutants: a bug that the product's processes are started with.
    mutant: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """What makes the product's processes load the mutant; nothing without one."""
        if not self.mutant:
            return {}
        settings = "tests.chaos.mutated_settings"
        return {"DJANGO_SETTINGS_MODULE": settings, "CHAOS_MUTANT": self.mutant}


FAIR: Final = Weather()

"""What is wrong with a configuration file, and on which line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault; `line` counts from 1, None: the file as a whole. Never holds a secret's text."""

    line: int | None
    detail: str


class ConfigurationError(Exception):
    """The file was refused and nothing was stored; every fault found is in `faults`."""

    def __init__(self, file: str, faults: Sequence[Fault]) -> None:
        self.file = file
        self.faults = sorted(faults, key=lambda fault: fault.line or 0)
        super().__init__("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        return [
            f"{self.file}:{fault.line}: {fault.detail}"
            if fault.line
            else f"{self.file}: {fault.detail}"
            for fault in self.faults
        ]

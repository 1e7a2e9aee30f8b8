"""Checkpoints of every test go to a file of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from audit import seals


@pytest.fixture(autouse=True)
def checkpoints(settings: Any, tmp_path: Path) -> Path:
    """Where the sealer appends its signed heads in this test."""
    path = tmp_path / "checkpoints.jsonl"
    settings.AUDIT_CHECKPOINTS_FILE = str(path)
    return path


@pytest.fixture
def one_transaction(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seals close what this very transaction wrote; the real horizon has tests of its own."""
    moment = seals._moment
    monkeypatch.setattr(seals, "_moment", lambda: replace(moment(), horizon=2**62))

"""Checkpoints of every test go to a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def checkpoints(settings: Any, tmp_path: Path) -> Path:
    """Where the sealer appends its signed heads in this test."""
    path = tmp_path / "checkpoints.jsonl"
    settings.AUDIT_CHECKPOINTS_FILE = str(path)
    return path

"""What the package's page says about the checks is what they are."""

from __future__ import annotations

import re
from pathlib import Path

from countersign_agent.conformance import CHECKS

README = Path(__file__).resolve().parents[2] / "sdk" / "README.md"


def test_the_table_of_the_checks_is_the_catalogue() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \| (yes)? ?\|$", README.read_text(), re.MULTILINE)
    wanted = [(each.name, each.title, "yes" if each.commits else "") for each in CHECKS]
    assert rows == wanted

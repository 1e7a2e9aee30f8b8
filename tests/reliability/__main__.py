"""`python -m tests.reliability`: write the marked tests into the page's table of faults."""

from __future__ import annotations

import re

from tests.reliability.table import PAGE, cell_for, marked


def main() -> None:
    """Only the last cell of each row is written; what it says before that is for people."""
    text = PAGE.read_text("utf-8")
    for row, proofs in marked().items():
        line = re.compile(rf"^(\| FM-{row} \|[^|]+\|[^|]+\|)[^|]*\|$", re.MULTILINE)
        text = line.sub(rf"\1 {cell_for(proofs)} |", text)
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()

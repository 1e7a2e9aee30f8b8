"""The rows of the table of faults: what marks them in the tests, and what the page says of them."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final = ROOT / "tests"
PAGE: Final = ROOT / "docs" / "reliability.md"
ROWS: Final = frozenset(range(1, 57))
_ROW = re.compile(r"^\| FM-(\d+) \|([^|]+)\|([^|]+)\|([^|]+)\|$", re.MULTILINE)
_NAMED = re.compile(r"`(\w+)`")

type Proof = tuple[str, str]
"""A file of tests, from the root, and the name of a test in it."""


@cache
def marked() -> dict[int, set[Proof]]:
    """Which tests carry `@pytest.mark.fm(…)`, by row. Read and not imported: no test runs."""
    found: dict[int, set[Proof]] = defaultdict(set)
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        everywhere = set(_rows_of_module(tree))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                rows = everywhere | {row for each in node.decorator_list for row in _rows(each)}
                for row in rows:
                    found[row].add((str(path.relative_to(ROOT)), node.name))
    return dict(found)


def _rows_of_module(tree: ast.Module) -> Iterator[int]:
    """`pytestmark` marks every test of its file."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            yield from _rows(node.value)


def _rows(marks: ast.expr) -> Iterator[int]:
    """The rows of every `pytest.mark.fm(…)` in an expression, those of single cases included."""
    for node in ast.walk(marks):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fm":
            yield from (ast.literal_eval(argument) for argument in node.args)


@cache
def told() -> dict[int, list[str]]:
    """The page's rows: what is injected, the outcome, and the cell that names the tests."""
    return {int(row): [cell.strip() for cell in cells] for row, *cells in _rows_of_page()}


def _rows_of_page() -> list[tuple[str, str, str, str]]:
    return _ROW.findall(PAGE.read_text("utf-8"))


def named(cell: str) -> list[str]:
    """The names of tests in a cell."""
    return _NAMED.findall(cell)


def cell_for(proofs: set[Proof]) -> str:
    """What the last cell of a row has to say, in links from the page's own folder."""
    files: dict[str, list[str]] = defaultdict(list)
    for path, name in sorted(proofs):
        files[path].append(f"`{name}`")
    shown = (f"[{Path(path).name}](../{path}): {', '.join(names)}" for path, names in files.items())
    return "; ".join(shown)

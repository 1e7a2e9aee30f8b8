"""One writer, one table, one page: what the source and the docs say of the arrows (S-1)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError

from plans import generated_page
from plans.generated_page import DOCS
from plans.lifecycle import TRANSITIONS
from plans.management.commands import document_lifecycle
from plans.status import MEANING, Status

ROOT = Path(__file__).resolve().parents[2]

# Rows with a status of their own, as the code names them, and the words they are given.
# Messages about plans have a status as well: `Message.Status`.
MESSAGES = "delivering.py"
OTHERS = {"intent", "replan", "Intent", "Replan", "Delivery"}
OTHER_WORDS = (
    *("Intent.Status.", "Replan.Status.", "Delivery.Status."),
    *("ContractRun.Status", "Notice.Status."),
)


_UPDATE = re.compile(r'UPDATE "?plans_plan\b')


def _code() -> Iterator[Path]:
    for package in ("config", "audit", "plans", "approvals"):
        for path in sorted((ROOT / package).rglob("*.py")):
            # A problem's status is a number of HTTP.
            if "migrations" not in path.parts and path.name != "problem.py":
                yield path


def _root(node: ast.expr) -> str:
    """`Replan` of `Replan.objects.filter(…).update`."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _assigned(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> Iterator[tuple[str, str]]:
    """Whose `status` is set, and to what."""
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        pairs: list[tuple[ast.expr, ast.expr | None]] = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=True))
        for to, value in pairs:
            if isinstance(to, ast.Attribute) and to.attr == "status":
                yield _root(to.value), ast.unparse(value) if value else ""


def _writes_of_status(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Assignments to `x.status`, `update(status=…)`, `Plan(status=…)`: line, whose, to what."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            yield from ((node.lineno, *pair) for pair in _assigned(node))
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else _root(node.func)
            for keyword in node.keywords:
                if keyword.arg == "status" and name in WRITERS:
                    yield node.lineno, _root(node.func), ast.unparse(keyword.value)


WRITERS = ("update", "create", "get_or_create", "update_or_create", "Plan", "aupdate", "acreate")


def test_nothing_else_writes_the_status_of_a_plan() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} {whose}.status = {word}"
        for path in _code()
        for line, whose, word in _writes_of_status(ast.parse(path.read_text("utf-8")))
        if whose not in OTHERS and not word.startswith(OTHER_WORDS) and path.name != MESSAGES
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "plan.status = Status.APPROVED",
        "plan.title, plan.status = '', word",
        "Plan.objects.filter(pk=1).update(status='approved')",
        "rows.update(status=word)",
        "Plan.objects.create(status='approved')",
    ],
)
def test_the_search_finds_what_it_is_for(line: str) -> None:
    [(_, whose, word)] = _writes_of_status(ast.parse(line))
    assert whose not in OTHERS
    assert not word.startswith(OTHER_WORDS)


def test_the_one_writer_guards_its_write() -> None:
    text = (ROOT / "plans" / "lifecycle.py").read_text("utf-8")
    assert text.count('"status": arrow.to') == 1
    assert text.count('Change(Plan, plan.pk, {"status": source}, changes)') == 1
    raw = [path for path in _code() if _UPDATE.search(path.read_text("utf-8"))]
    assert raw == []
    writers = [path.name for path in _code() if "insert_and_change(" in path.read_text("utf-8")]
    assert writers == ["lifecycle.py"]


def test_every_status_has_a_meaning() -> None:
    assert set(MEANING) == set(Status)


def test_the_documented_lifecycle_is_the_table() -> None:
    page = (DOCS / "lifecycle.md").read_text("utf-8")
    assert page == document_lifecycle.render()
    for verb, arrow in TRANSITIONS.items():
        for source in arrow.sources:
            unsent = " (unsent only)" if source in arrow.unsent_from else ""
            words = verb.value.replace("_", " ")
            assert f"    {source.value} --> {arrow.to.value}: {words}{unsent}\n" in page


def test_the_command_writes_the_page_and_checks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "lifecycle.md"
    monkeypatch.setattr(generated_page, "DOCS", tmp_path)
    command = document_lifecycle.Command(stdout=StringIO())
    with pytest.raises(CommandError, match="stale"):
        command.handle(check=True)
    command.handle(check=False)
    command.handle(check=True)
    page.write_text("older", "utf-8")
    with pytest.raises(CommandError, match="stale"):
        command.handle(check=True)

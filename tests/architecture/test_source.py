"""What the source itself promises: found by reading it, so that no reviewer has to."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("config", "audit", "plans", "approvals")


def files(*patterns: str) -> Iterator[Path]:
    """Files of the repository, as Git lists them (new ones too), that match a glob."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    yield from (ROOT / name for name in listed if (ROOT / name).is_file())


def python(*folders: str) -> list[Path]:
    found = files(*(f"{folder}/*.py" for folder in folders))
    return [path for path in found if "migrations" not in path.parts]


def hits(pattern: str, paths: list[Path]) -> list[str]:
    """`path:line` of every match."""
    search = re.compile(pattern).search
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if search(line)
    ]


def test_there_is_something_to_read() -> None:
    assert len(python(*APPS)) > 30
    assert len(list(files("templates/*.html"))) > 20


@pytest.mark.parametrize(
    "pattern",
    [
        r"\|\s*safe\b",
        r"\|\s*safeseq\b",
        r"{%\s*autoescape\s+off",
        r"\sstyle=",
        r"\son(click|load|change|submit|error|input|key\w+|mouse\w+|focus|blur)\s*=",
        r"hx-on",
        r"hx-vals='js:|hx-headers='js:|javascript:",
        r"<style\b",
        r"<script(?![^>]*\bnonce=)",
        r"(src|href)=[\"']https?://",
    ],
)
def test_templates_hold_nothing_unescaped_inline_or_foreign(pattern: str) -> None:
    assert hits(pattern, list(files("templates/*.html"))) == []


def test_styles_know_no_left_and_right() -> None:
    """A language may run the other way: start and end, and `:dir()` where there is no such word."""
    sides = r"-(left|right)\b|^\s+(left|right):|(text-align|float|clear): (left|right)"
    assert hits(sides, list(files("static/css/*.css"))) == []


@pytest.mark.parametrize("word", [r"\bmark_safe\b", r"\bSafeString\b", r"\bSafeText\b"])
def test_nothing_is_declared_safe(word: str) -> None:
    """SEC-12: plan text is text. `format_html` escapes its arguments and is fine."""
    assert hits(word, python(*APPS)) == []


def test_one_function_writes_the_status_of_a_plan() -> None:
    """S-1: `transition()` alone; enrolment creates the row in its first status."""
    writes = rf"(\.update\([^)]*\bstatus=.*Status\.({_plan_statuses()}))|(\bplan\.status\s*=[^=])"
    assert [hit for hit in hits(writes, python(*APPS)) if "plans/lifecycle.py" not in hit] == []


def _plan_statuses() -> str:
    """Words that only a plan's status has; QUEUED, PARKED and the like are other rows'."""
    words = ("VERIFYING", "PENDING", "APPROVED", "COMMITTING", "UNKNOWN", "UNRESOLVED")
    return "|".join((*words, "COMMITTED", "REJECTED", "SUPERSEDED", "EXPIRED", "STALE"))


def test_no_list_skips_rows() -> None:
    """Keyset pages only: an offset costs what it skips, and shifts while rows come and go."""
    assert hits(r"\bPaginator\b|\bOFFSET\b|\boffset=", python(*APPS)) == []


def test_verbs_do_not_sleep() -> None:
    """T-9: waits live in the database. Writing down an answer in hand may wait (T-12)."""
    sleeping = hits(r"\btime\.sleep\(|\bcountdown=|\beta=", python("audit", "plans", "approvals"))
    awake = ("/management/", "plans/recording.py")
    assert [hit for hit in sleeping if not any(path in hit for path in awake)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        r"\bTODO\b|\bFIXME\b|\bXXX\b|NotImplementedError",
        r"except Exception:\s*(pass|\.\.\.)",
        r"#\s*type:\s*ignore(?!\[)",
        r"#\s*noqa(?!:\s*[A-Z])",
        r"pytest\.skip\(|mark\.(skip|xfail)\b",
    ],
)
def test_no_marks_of_unfinished_work(pattern: str) -> None:
    paths = [
        path for path in python(*APPS, "tests", "demo", "sdk", "target") if path != Path(__file__)
    ]
    assert hits(pattern, paths) == []


@pytest.mark.parametrize("name", ["utils.py", "helpers.py", "services.py"])
def test_modules_are_named_for_what_they_do(name: str) -> None:
    assert [path for path in python(*APPS) if path.name == name] == []


# Pure tables: one line or one arm per case.
TABLES = {"plans/errors.py", "plans/recording.py settle"}


@pytest.mark.parametrize(
    ("pattern", "most"),
    [("*.py", 300), ("*.html", 120), ("*.css", 300), ("*.js", 300)],
)
def test_files_keep_to_their_room(pattern: str, most: int) -> None:
    """When something outgrows its file, a noun is missing. Tests are tables of cases."""
    long = {
        str(path.relative_to(ROOT)): count
        for path in files(pattern)
        if not {"migrations", "tests"} & set(path.parts)
        and (count := len(path.read_text(encoding="utf-8").splitlines())) > most
    }
    assert {name: count for name, count in long.items() if name not in TABLES} == {}


def test_functions_can_be_read_to_the_end() -> None:
    long = [
        name
        for path in python(*APPS)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and _lines(node) > 25
        and (name := f"{path.relative_to(ROOT)} {node.name}") not in TABLES
    ]
    assert long == []


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body without docstring, inner functions, and the insides of pure tables."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    lines = {n for node in body for n in range(node.lineno, (node.end_lineno or 0) + 1)}
    for node in body:
        for part in ast.walk(node):
            table = isinstance(part, ast.Dict | ast.FunctionDef) or (
                isinstance(part, ast.Call) and len(part.keywords) >= 5
            )
            if table and isinstance(part, ast.stmt | ast.expr):
                lines -= set(range(part.lineno + 1, (part.end_lineno or 0) + 1))
    return len(lines)


def test_the_layers_are_named_once() -> None:
    """The order of the cascade is one line; files fill its layers and nothing outside them."""
    sheets = list(files("static/css/*.css"))
    assert hits(r"^@layer [a-z, ]+;", sheets) == ["static/css/main.css:2"]
    assert hits(r"^[^@/\s}*]", sheets) == []


def test_scripts_evaluate_nothing() -> None:
    assert (
        hits(r"\beval\(|new Function|innerHTML|document\.write", list(files("static/*.js"))) == []
    )

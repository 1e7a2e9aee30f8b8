"""What the package says about itself: two shells of one core, a tree of errors, its own size."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

import countersign_agent
from countersign_agent import AsyncClient, AsyncGuardedTask, Client, Guard, GuardedTask, errors
from countersign_agent.api import Api
from countersign_agent.errors import CountersignError, Refused, RequestFault, family, refusal
from countersign_agent.flows import awaitable, sync
from countersign_agent.problems import Problem
from countersign_agent.task import Task
from plans.errors import CATALOGUE
from tests.architecture.test_source import ROOT, _lines, files, hits
from tests.sdk.programs import QUICK

# What is built on top of it has tests of its own.
ON_TOP = re.compile(r"/(tools|mcp|conformance)|/(__main__|cli)\.py")
SOURCE = [path for path in files("sdk/src/*.py") if not ON_TOP.search(str(path))]
PAGE = ROOT / "sdk" / "README.md"


@pytest.mark.parametrize(
    ("core", "thread", "loop"), [(Api, Client, AsyncClient), (Task, GuardedTask, AsyncGuardedTask)]
)
def test_both_shells_offer_the_same_verbs(core: type, thread: type, loop: type) -> None:
    threads = {name: each.verb for name, each in vars(thread).items() if isinstance(each, sync)}
    loops = {name: each.verb for name, each in vars(loop).items() if isinstance(each, awaitable)}
    assert threads == loops
    assert len(threads) > 10
    assert all(verb.__doc__ for verb in threads.values())
    if core is Api:
        assert set(threads) == {name for name in vars(Api) if not name.startswith("_")}


def test_every_name_of_the_package_is_there() -> None:
    assert sorted(countersign_agent.__all__) == countersign_agent.__all__
    assert all(hasattr(countersign_agent, name) for name in countersign_agent.__all__)


# ── Errors ──────────────────────────────────────────────────────────────────────────────────
# Only people at their browsers hear these.
PEOPLES = {
    *("sign-in-required", "unverified-plan", "step-up-required", "second-person-required"),
    *("already-decided", "superseded", "not-decidable", "not-unresolved", "target-in-use"),
    *("decided-too-soon", "digest-mismatch", "digest-missing", "confirmation-mismatch"),
    *("forbidden-origin", "note-required", "invalid-note", "id-mismatch"),
    "changes-not-opened",
}


@pytest.mark.parametrize("code", sorted(set(CATALOGUE) - PEOPLES))
def test_every_refusal_of_the_server_has_its_class(code: str) -> None:
    told = CATALOGUE[code]
    error = refusal(Problem(told.status, code, next_action=told.next_action))  # type: ignore[arg-type]
    assert error.next_action == told.next_action
    named = [kind for kind in family(Refused) if code in getattr(kind, "codes", ())]
    if told.next_action == "fix_request":
        assert type(error) is (named[0] if named else RequestFault)
    else:
        assert [type(error)] == named


def test_no_class_names_a_code_that_the_server_does_not_have() -> None:
    named = [code for kind in family(Refused) for code in vars(kind).get("codes", ())]
    assert set(named) <= set(CATALOGUE)
    assert len(named) == len(set(named))


def test_an_unknown_refusal_is_still_told_apart() -> None:
    assert type(refusal(Problem(422, "made-up-later"))) is RequestFault
    assert type(refusal(Problem(500, "made-up-later"))) is errors.ServerFault


def table() -> str:
    """The error table of the page."""
    rows = ["| raised | what to do | when |", "|---|---|---|"]
    for kind in family(CountersignError):
        if kind is not CountersignError and kind.__module__ == errors.__name__:
            words = " ".join((kind.__doc__ or "").split())
            rows.append(f"| `{kind.__name__}` | `{kind.next_action}` | {words} |")
    return "\n".join(rows)


def test_the_table_of_errors_is_the_tree() -> None:
    found = re.search(r"<!-- errors -->\n(.*?)\n<!-- /errors -->", PAGE.read_text(), re.DOTALL)
    assert found is not None
    assert found[1].strip() == table()


# ── The source ──────────────────────────────────────────────────────────────────────────────
def test_it_imports_nothing_of_the_rest() -> None:
    allowed = {"httpx", "httpcore", "rfc8785", "countersign_agent"}
    known = {"__future__", *__import__("sys").stdlib_module_names}
    for path in SOURCE:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            assert {name.split(".")[0] for name in names} <= allowed | known, path.name


def test_it_can_be_read_to_the_end() -> None:
    for path in SOURCE:
        tree = ast.walk(ast.parse(path.read_text()))
        functions = [n for n in tree if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        assert [f"{path.name} {each.name}" for each in functions if _lines(each) > 25] == []


def test_it_has_no_words_of_its_own() -> None:
    """The package prints and logs nothing: what it knows it returns or raises."""
    assert hits(r"\bprint\(|\blogging\.", SOURCE) == []


def test_it_is_typed() -> None:
    assert (Path(countersign_agent.__file__).parent / "py.typed").exists()


# ── The page ────────────────────────────────────────────────────────────────────────────────
def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_every_action_is_explained() -> None:
    table = PAGE.read_text().partition("| `next_action` |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| (?!`)", table, re.MULTILINE)
    assert sorted(set(rows)) == sorted(get_args(countersign_agent.NextAction))


def test_the_pages_adapter_carries_a_plan_to_its_end() -> None:
    (source,) = [block for block in blocks("python") if "class LedgerTarget" in block]
    scope: dict[str, Any] = {}
    exec(source, scope)
    ledger = Ledger()
    guard = Guard(None, {"ledger": scope["LedgerTarget"](ledger)}, patience=QUICK)
    with guard.task("t") as task:
        planned = task.plan("ledger", "write_off", {"account": "7"})
        assert planned.plan is not None
        assert task.commit(planned.plan.plan_id).result == {"written_off": True}
    assert ledger.heard == ["plan", "apply", "apply"]


class Ledger:
    """Loses its first answer to a commit."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def send(self, what: str, *message: Any) -> tuple[int, bytes]:
        self.heard.append(what)
        if what == "plan":
            action = {"op": "update", "target": "account/7", "field": "x", "from": 0, "to": 1}
            names = {"plan_id": "p1", "plan_token": "tok", "input_fingerprint": "f"}
            more = {"expires_at": "2099-01-01T00:00:00Z", "actions": [action]}
            return 200, json.dumps(names | more).encode()
        if self.heard.count("apply") == 1:
            raise TimeoutError
        done = {"plan_id": "p1", "status": "applied", "result": {"written_off": True}}
        return 200, json.dumps(done).encode()


def test_every_link_of_the_page_leads_to_something() -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", PAGE.read_text()):
        assert link.startswith("https://") or (PAGE.parent / link.split("#")[0]).exists(), link

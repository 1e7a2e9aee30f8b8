"""Every failpoint is there, is met by a test, and is out of reach of a production process."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from audit import failpoints
from audit.failpoints import STEPS, failpoint
from tests.matrix.combinations import FAMILIES, SEALS

ROOT = Path(__file__).resolve().parents[2]
APPS = ("config", "audit", "plans", "approvals")


def calls(name: str) -> Iterator[ast.Call]:
    """Every call of this name in the product."""
    for path in (path for app in APPS for path in (ROOT / app).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _called(node.func) == name:
                yield node


def _called(function: ast.expr) -> str:
    return getattr(function, "id", "") or getattr(function, "attr", "")


def test_every_step_is_in_the_code_and_every_failpoint_is_a_step() -> None:
    names = [ast.literal_eval(call.args[0]) for call in calls("failpoint")]
    assert set(names) == set(STEPS)
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_every_step_is_met_by_a_test() -> None:
    in_the_matrix = {step for family in FAMILIES.values() for step in family.steps}
    in_the_matrix |= {step for step, _ in SEALS}
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py"))
    assert [s for s in STEPS if s not in in_the_matrix and f'"{s}"' not in tests] == []


def test_a_failpoint_does_nothing_by_itself() -> None:
    for step in STEPS:
        failpoint(step, 1)


def test_they_cannot_be_switched_on_with_the_settings_of_the_product() -> None:
    with pytest.raises(ImproperlyConfigured):
        failpoints.install(lambda step, key: None)
    failpoint("claim.before")


@pytest.mark.parametrize("value", [False, None, "true", 1])
def test_only_the_word_itself_switches_them_on(settings: Any, value: object) -> None:
    settings.FAILPOINTS = value
    with pytest.raises(ImproperlyConfigured):
        failpoints.install(lambda step, key: None)


def test_no_product_code_can_switch_them_on() -> None:
    named = {
        path.relative_to(ROOT).as_posix()
        for app in (*APPS, "demo")
        for path in (ROOT / app).rglob("*.py")
        if "FAILPOINTS" in path.read_text("utf-8")
    }
    assert named == {"audit/failpoints.py"}
    assert list(calls("install")) == []

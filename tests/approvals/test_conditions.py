"""CEL in its bounds: true, false, or no answer with a reason (B-7, SEC-28)."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from approvals.policies.conditions import Unclear, complaint, holds

FACTS: dict[str, Any] = {
    "target": "billing",
    "operation": "refund",
    "agent": "support-agent",
    "risk": "high",
    "objects": ["invoice/4412"],
    "actions": [{"op": "update", "target": "invoice/4412", "field": "status", "to": "refunded"}],
    "from": {"refunded_cents": 0, "status": "paid"},
    "to": {"refunded_cents": 48000, "status": "refunded"},
    "delta": {"refunded_cents": 48000},
    "inputs": {"amount_cents": 48000, "memo": "a\u202eb", "parts": [1, 2.5], "none": None},
}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('operation == "refund" && delta.refunded_cents >= 100000', False),
        ('operation == "refund" && delta.refunded_cents >= 48000', True),
        ('from.status == "paid" && to["status"] == "refunded"', True),
        ('objects.exists(o, o.startsWith("invoice/"))', True),
        ('actions.all(a, a.op == "update")', True),
        ("has(delta.fee_cents) && delta.fee_cents > 0", False),
        ("delta.refunded_cents > 47999.5", True),
        ('inputs.memo == "a\\u202eb"', True),
        ("inputs.none == null", True),
        ('risk in ["high", "critical"]', True),
        ('target.matches("^bill")', True),
        ("true", True),
    ],
)
def test_it_answers(text: str, answer: bool) -> None:
    assert complaint(text) is None
    assert holds(text, FACTS) is answer


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("delta.fee_cents > 0", "Key not found"),
        ("inputs.memo > 5", "No matching overloads"),
        ("1 / (delta.refunded_cents - 48000) > 0", "divide by zero"),
        ("inputs.amount_cents + 9223372036854775807 > 0", "overflow"),
        ("inputs.amount_cents", "48000"),
        ('inputs.memo.matches("(")', "regular expression"),
        (
            "[0,1,2,3,4,5,6,7,8,9].map(a, [0,1,2,3,4,5,6,7,8,9].map(b, [0,1,2,3,4,5,6,7,8,9].map(c,"
            " [0,1,2,3,4,5,6,7,8,9].map(d, a)))).size() > 0 && "
            "[0,1,2,3,4,5,6,7,8,9].all(e, e < 10)",
            "Iteration budget",
        ),
    ],
)
def test_no_answer_is_never_a_no(text: str, reason: str) -> None:
    with pytest.raises(Unclear, match=reason) as unclear:
        holds(text, FACTS)
    assert unclear.value.reads == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('operation = "refund"', "line 1, column 11: Syntax error"),
        ('operation == "refund" &&\n  oper == "x"', "line 2, column 3: undeclared reference"),
        ('operation + 1 == "x"', "line 1, column 11: found no matching overload"),
        ("", "Syntax error"),
        ("operation", "true or false"),
        ("1 + 1", "true or false"),
        ("(" * 300 + "true" + ")" * 300, "recursion"),
        ("true || " * 300 + "true", "longer than 2000"),
        ("true \x00", "Syntax error"),
        ("now < timestamp('2026-01-01T00:00:00Z')", "undeclared reference to 'now'"),
        ("\ud800", "is no CEL condition"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_with_its_place(text: str, words: str) -> None:
    assert words in (complaint(text) or "")
    with pytest.raises(Unclear):
        holds(text, FACTS)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('operation == "other" && inputs.amount_cents > 1', False),
        ('inputs.amount_cents > 1 && operation == "other"', False),
        ('operation == "refund" || inputs.amount_cents > 1', True),
        ('operation == "refund" && inputs.amount_cents > 1', "inputs"),
        ("has(inputs.amount_cents)", "inputs"),
        ("!(inputs.amount_cents > 1)", "inputs"),
    ],
)
def test_a_withheld_variable_is_named_only_where_the_answer_hangs_on_it(
    text: str, answer: bool | str
) -> None:
    """T-2."""
    told = {name: value for name, value in FACTS.items() if name != "inputs"}
    if isinstance(answer, bool):
        assert holds(text, told) is answer
        return
    with pytest.raises(Unclear) as unclear:
        holds(text, told)
    assert unclear.value.reads == answer


def test_hostile_values_cost_no_more_than_an_answer() -> None:
    deep: Any = "x"
    for _ in range(30):
        deep = {"a": deep}
    hostile = FACTS | {"inputs": {"s": "a" * 65_536, "deep": deep, "many": list(range(2000))}}
    began = time.monotonic()
    assert not holds('inputs.s.matches("^(a|a)*b$")', hostile)
    assert holds("inputs.many.all(n, n >= 0) && inputs.deep.a.a != null", hostile)
    with pytest.raises(Unclear):
        holds("inputs.many.all(n, inputs.many.all(m, m >= 0))", hostile)
    assert time.monotonic() - began < 10


def test_threads_share_a_condition() -> None:
    wrong: list[int] = []

    def ask(start: int) -> None:
        for number in range(start, start + 300):
            told = FACTS | {"delta": {"refunded_cents": number}}
            if holds("delta.refunded_cents >= 1000", told) != (number >= 1000):
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(700 + n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_start_of_a_process_does_not_load_it() -> None:
    words = (
        "import os, sys, django; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings';"
        "django.setup(); import config.urls; sys.exit('cel_expr_python.cel' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", words], check=False).returncode == 0

"""Every row of the table of faults has a test, and the page of reliability names it."""

from __future__ import annotations

import pytest

from tests.reliability.table import ROWS, cell_for, marked, named, told


@pytest.mark.parametrize("row", sorted(ROWS), ids="FM-{}".format)
def test_a_row_has_a_test_and_the_page_names_it(row: int) -> None:
    proofs = marked().get(row, set())
    assert proofs, f"no test is marked @pytest.mark.fm({row})"
    injected, outcome, tests = told()[row]
    assert injected
    assert outcome
    assert tests == cell_for(proofs), "run: .venv/bin/python -m tests.reliability"
    assert len(named(tests)) == len(proofs)


def test_no_mark_and_no_row_is_of_another_table() -> None:
    assert set(marked()) == set(told()) == ROWS

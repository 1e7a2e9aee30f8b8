"""Every step, every way to fail and every mode of the target, pairwise; the ledger judges."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.faults.target_process import TargetProcess
from tests.matrix.arming import Orders
from tests.matrix.combinations import ACTS, FAMILIES, every_row, rows
from tests.matrix.crew import Crew
from tests.matrix.run import Matrix
from tests.matrix.staging import make_world


@pytest.mark.parametrize("family", FAMILIES)
def test_every_pair_of_step_act_and_mode_is_among_the_rows(family: str) -> None:
    steps, modes = FAMILIES[family].steps, FAMILIES[family].modes
    made = list(rows(family))
    assert {(row.step, row.mode) for row in made} == set(product(steps, modes))
    assert {(row.step, row.act) for row in made} == set(product(steps, ACTS))
    assert {(row.act, row.mode) for row in made} == set(product(ACTS, modes))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_part_has_every_mode_and_every_step_with_every_act(family: str) -> None:
    steps, modes = FAMILIES[family].steps, FAMILIES[family].modes
    for part in range(len(steps)):
        made = list(rows(family, part))
        assert sorted(row.mode for row in made) == sorted(modes)
        assert {(row.step, row.act) for row in made} == set(product(steps, ACTS))


@pytest.fixture
def matrix(tmp_path: Path, transactional_db: None) -> Iterator[Matrix]:
    """The product's processes, their failpoints live, and a target that forgets nothing."""
    with TargetProcess(tmp_path / "target") as target:
        world = make_world(target)
        with Crew(tmp_path) as crew:
            yield Matrix(world, target, crew, Orders(tmp_path))


def test_no_invariant_breaks_in_a_part_of_the_matrix(matrix: Matrix) -> None:
    """Every mode, and every step with every way to fail; `MATRIX_PART` chooses another part."""
    result = matrix.play(every_row(int(os.environ.get("MATRIX_PART", "0"))))
    print(result.line())
    assert result.findings == []


@pytest.mark.long
def test_no_invariant_breaks_in_the_whole_matrix(matrix: Matrix) -> None:
    result = matrix.play(every_row())
    print(result.line())
    assert result.findings == []

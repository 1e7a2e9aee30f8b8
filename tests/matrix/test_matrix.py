"""Every step, every way to fail and every mode of the target, pairwise; the ledger judges."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.faults.target_process import TargetProcess
from tests.matrix.arming import Orders
from tests.matrix.combinations import ACTS, FAMILIES, Row, every_row, rows
from tests.matrix.crew import Crew
from tests.matrix.run import Matrix, Result
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


type Play = Callable[..., Result]


@pytest.fixture
def play(tmp_path: Path, transactional_db: None, settings: Any) -> Iterator[Play]:
    """`play(rows)`: the product's processes, their failpoints live, and a target with a ledger."""
    # Earlier tests on this database left checkpoints of trails that are gone.
    settings.AUDIT_CHECKPOINTS_FILE = str(tmp_path / "checkpoints.jsonl")
    with ExitStack() as stack:

        def played(rows: list[Row], mutant: str = "") -> Result:
            target = stack.enter_context(TargetProcess(tmp_path / "target"))
            world = make_world(target)
            crew = stack.enter_context(Crew(tmp_path, mutant))
            return Matrix(world, target, crew, Orders(tmp_path)).play(rows)

        yield played


def test_no_invariant_breaks_in_a_part_of_the_matrix(play: Play) -> None:
    """Every mode, and every step with every way to fail; `MATRIX_PART` chooses another part."""
    result = play(every_row(int(os.environ.get("MATRIX_PART", "0"))))
    print(result.line())
    assert result.findings == []


@pytest.mark.long
def test_no_invariant_breaks_in_the_whole_matrix(play: Play) -> None:
    result = play(every_row())
    print(result.line())
    assert result.findings == []


# A part of the rows is enough for a bug to show.
SHOWS = ("hang, after", "500, before", "lost, then 409 changed", "lost, then 410")


@pytest.mark.long
@pytest.mark.parametrize(
    ("mutant", "says"),
    [
        ("fresh_key_on_retry", "applied 2 times"),
        ("unknown_is_committed", "committed, and nothing was applied"),
        ("refusal_is_believed_on_a_retry", "conflicted, and it was applied"),
        ("seals_outrun_their_rows", "the chain"),
    ],
)
def test_a_product_with_a_bug_is_found_out(play: Play, mutant: str, says: str) -> None:
    result = play([row for row in rows("commit") if row.mode in SHOWS], mutant)
    assert [found for found in result.findings if says in found] != []

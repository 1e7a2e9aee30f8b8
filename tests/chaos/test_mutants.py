"""The judge bites in earnest: the whole product with one bug, and the invariant it breaks.

Each history is short, has the weather that its bug cannot stand, and holds without the bug.
`make test` plays one of them, `make chaos-mutants` all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.chaos.checker import Verdict
from tests.chaos.mutants import MUTANTS
from tests.chaos.run import play
from tests.chaos.weather import Weather

SEED = 1
SECONDS = 4.0
# A target that knows its keys and nothing else: a plan with another key is a new wish.
TRUSTS_KEYS_ALONE = """
ALTER TABLE refunds DROP CONSTRAINT refunds_plan_id_key;
CREATE FUNCTION open_again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  NEW.status := 'open';
  NEW.settled_at := NULL;
  NEW.actions := (SELECT jsonb_agg(action || jsonb_build_object('from', action -> 'to'))
    FROM jsonb_array_elements(NEW.actions::jsonb) action
    WHERE action ->> 'field' = 'refunded_cents');
  NEW.state := jsonb_set(NEW.state::jsonb,
    ARRAY['invoice/' || (NEW.inputs::jsonb ->> 'invoice_id'), 'refunded_cents'],
    NEW.outcome::jsonb -> 'refunded_cents');
  RETURN NEW;
END $$;
CREATE TRIGGER open_again BEFORE UPDATE ON countersign_plans
  FOR EACH ROW WHEN (NEW.status = 'applied') EXECUTE FUNCTION open_again();
"""
# A target that repeats no answer: it compares again, and finds its own change (FM-14).
FINDS_ITS_OWN_CHANGE = """
CREATE FUNCTION find_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  NEW.status := 409;
  NEW.answer := '{"code":"state-changed","changed":[{"path":"refunded_cents"}]}';
  RETURN NEW;
END $$;
CREATE TRIGGER find_change BEFORE INSERT ON countersign_keys
  FOR EACH ROW WHEN (NEW.status = 200) EXECUTE FUNCTION find_change();
"""
LOST = ("apply_then_timeout", "apply_then_reset")
UNDONE = ("timeout_before_apply", "reset_before_apply", "error_500")
BRIEF = Weather(LOST, longest_fault=1.0, blows=False, unknown_deadline=8, liveness=12.0)


@dataclass(frozen=True, slots=True)
class Case:
    """`breaks`: the list of the verdict that must not be empty."""

    mutant: str
    breaks: str
    weather: Weather


CASES = [
    Case("fresh_key_on_retry", "double_applies", replace(BRIEF, billing=TRUSTS_KEYS_ALONE)),
    Case("unknown_is_committed", "wrong_statuses", replace(BRIEF, modes=UNDONE)),
    Case(
        "refusal_is_believed_on_a_retry",
        "wrong_statuses",
        replace(BRIEF, billing=FINDS_ITS_OWN_CHANGE),
    ),
    Case("unknown_is_forgotten", "stuck", BRIEF),
    Case("seals_outrun_their_rows", "broken_chain", replace(BRIEF, modes=())),
]
WORDS = {
    "fresh_key_on_retry": "applied 2 times",
    "unknown_is_committed": "committed, and nothing was applied",
    "refusal_is_believed_on_a_retry": "conflicted, and it was applied",
    "unknown_is_forgotten": "still unknown",
    "seals_outrun_their_rows": "the chain:",
}
IN_EVERY_RUN = ("fresh_key_on_retry",)


def _tried(case: Case) -> Any:
    marks = [] if case.mutant in IN_EVERY_RUN else [pytest.mark.long]
    return pytest.param(case, id=case.mutant, marks=marks)


def _names(verdict: Verdict, case: Case) -> bool:
    """Whether the judge reports the very invariant that the bug breaks."""
    return any(WORDS[case.mutant] in finding for finding in getattr(verdict, case.breaks))


def test_every_mutant_is_tried() -> None:
    assert [case.mutant for case in CASES] == list(MUTANTS) == list(WORDS)


@pytest.mark.parametrize("case", [_tried(case) for case in CASES])
def test_a_mutant_breaks_its_invariant(case: Case) -> None:
    weather = replace(case.weather, mutant=case.mutant)
    # A busy machine gets through little in four seconds; then it has more time, once.
    verdict = play(SEED, SECONDS, weather=weather).verdict
    if not _names(verdict, case):
        verdict = play(SEED, 4 * SECONDS, weather=weather).verdict
    assert _names(verdict, case), verdict


@pytest.mark.long
@pytest.mark.parametrize("billing", [TRUSTS_KEYS_ALONE, FINDS_ITS_OWN_CHANGE], ids=["keys", "own"])
def test_the_product_holds_with_the_same_targets(billing: str) -> None:
    """What the mutants met is no trap: without them nothing breaks."""
    outcome = play(SEED, SECONDS, weather=replace(BRIEF, billing=billing))
    assert outcome.verdict.findings == []
    assert outcome.figures.faulted > 0

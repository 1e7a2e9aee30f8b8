"""The judge bites: a falsified ledger, status, decision or chain is found, each by its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plans.status import TERMINAL, Status
from tests.chaos.checker import Effect, History, Story, figures, judge

APPLIED = Effect("p-1", "k-1", 500)
COMMITTED = Story("p-1", "k-1", 500, "committed", "committed", ("unknown", "applied"), 1, 2.0)
REJECTED = Story("p-2", "k-2", 700, "rejected", "rejected")
CONFLICTED = Story("p-3", "k-3", 900, "conflicted", "conflicted", ("conflicted",), 1, 1.0)
TRUE = History((APPLIED,), (COMMITTED, REJECTED, CONFLICTED), frozenset({"p-1", "p-3"}))


def told(status: str) -> Story:
    """The applied plan, told with another status, by row and trail alike."""
    return replace(COMMITTED, status=status, trail=status)


def test_a_true_history_has_no_findings() -> None:
    assert judge(TRUE).findings == []


@pytest.mark.parametrize(
    "ledger",
    [
        (APPLIED, APPLIED),
        (APPLIED, replace(APPLIED, key="k-other")),
        (APPLIED, Effect("p", "k-1", 1)),
    ],
    ids=["the same twice", "another key", "the key of another plan"],
)
def test_invariant_1_bites_when_something_is_applied_twice(ledger: tuple[Effect, ...]) -> None:
    assert judge(replace(TRUE, ledger=ledger)).double_applies


def test_invariant_2_bites_when_committed_was_not_applied() -> None:
    verdict = judge(replace(TRUE, ledger=()))
    assert verdict.wrong_statuses == ["plan p-1: committed, and nothing was applied"]


@pytest.mark.parametrize("status", sorted(TERMINAL - {Status.COMMITTED}))
def test_invariant_3_bites_when_a_closed_plan_was_applied(status: str) -> None:
    verdict = judge(replace(TRUE, stories=(told(status), REJECTED, CONFLICTED)))
    assert verdict.wrong_statuses == [f"plan p-1: {status}, and it was applied"]


@pytest.mark.parametrize("status", ["approved", "committing", "unknown"])
def test_invariant_4_bites_when_a_decided_plan_has_no_end(status: str) -> None:
    verdict = judge(replace(TRUE, stories=(told(status), REJECTED, CONFLICTED)))
    assert verdict.stuck == [f"plan p-1: still {status}"]
    assert verdict.lost_approvals == [f"plan p-1: approved, and it is {status}"]


@pytest.mark.parametrize(
    ("stands", "calm_for", "stuck"),
    [(170, 180, True), (600, 180, True), (5, 180, False), (600, 30, False)],
    ids=["for good", "since before the calm", "a young re-plan", "a short calm"],
)
def test_invariant_4_bites_when_a_plan_is_never_read_back(
    stands: float, calm_for: float, stuck: bool
) -> None:
    unread = replace(REJECTED, status="verifying", trail="", stands=stands)
    verdict = judge(replace(TRUE, stories=(COMMITTED, unread, CONFLICTED), calm_for=calm_for))
    assert verdict.stuck == (["plan p-2: still verifying"] if stuck else [])


def test_invariant_5_bites_when_the_chain_does_not_verify() -> None:
    verdict = judge(replace(TRUE, chain_holds=False, chain_report="row 7"))
    assert verdict.broken_chain == ["the chain: row 7"]


def test_unresolved_is_an_end_whatever_the_ledger_says() -> None:
    for ledger in ((), (APPLIED,)):
        stories = (told("unresolved"), REJECTED, CONFLICTED)
        assert judge(replace(TRUE, ledger=ledger, stories=stories)).findings == []


def test_an_approval_that_was_told_and_not_recorded_is_lost() -> None:
    assert judge(replace(TRUE, acknowledged=frozenset({"p-2"}))).lost_approvals
    assert judge(replace(TRUE, acknowledged=frozenset({"p-9"}))).lost_approvals


def test_an_approval_that_went_back_to_people_is_lost() -> None:
    verdict = judge(replace(TRUE, ledger=(), stories=(told("pending"),), acknowledged=frozenset()))
    assert verdict.lost_approvals == ["plan p-1: approved, and it is pending"]


@pytest.mark.parametrize(
    "ledger",
    [
        (Effect("p-9", "k-9", 1), APPLIED),
        (replace(APPLIED, key="k"),),
        (replace(APPLIED, cents=1),),
    ],
    ids=["an unknown plan", "another key", "another amount"],
)
def test_an_effect_that_nobody_approved_is_found(ledger: tuple[Effect, ...]) -> None:
    assert judge(replace(TRUE, ledger=ledger)).wrong_statuses


def test_a_trail_that_tells_another_end_is_found() -> None:
    stories = (replace(COMMITTED, trail="unknown"), REJECTED, CONFLICTED)
    assert judge(replace(TRUE, stories=stories)).wrong_statuses


def test_the_figures_count_what_was_sent_and_what_went_wrong() -> None:
    counted = figures(TRUE)
    assert (counted.plans, counted.commits, counted.faulted, counted.committed) == (3, 2, 1, 1)
    assert (counted.unresolved, counted.p50) == (0, 1.5)
    assert figures(History((), ())).p95 == 0

"""Every check passes a target that conforms, and catches each target that breaks its rule."""

from __future__ import annotations

import time
from datetime import timedelta
from email.utils import formatdate

import pytest

from countersign_agent.conformance import CHECKS, NAMES, Verdict
from tests.conformance.checking import SLOW, check
from tests.conformance.counting import Ask, Counting, Plan, Refusal, Reply, now
from tests.conformance.faults.commits import Races
from tests.conformance.faults.contending import NobodyWins, WinsInSilence, WinsUnheard
from tests.conformance.faults.fault import Fault
from tests.conformance.faults.hostile import HangsAlways
from tests.conformance.faulty import FAULTS


@pytest.mark.parametrize("moves", [True, False], ids=["moved by a hook", "moved by a commit"])
def test_a_target_that_conforms_passes_every_check(moves: bool) -> None:
    target = Counting()
    report = check(target, moves=moves)
    assert [(each.name, each.wrong, each.look, each.lacks) for each in report.results] == [
        (name, (), (), "") for name in NAMES
    ]
    assert report.conforms
    assert report.complete
    # What the report says was applied is what happened, and no more than the help says.
    assert report.commits == target.applied <= 15


def test_nothing_is_applied_unless_it_is_asked_for() -> None:
    target = Counting()
    report = check(target, commits=False, moves=False)
    assert target.counters == {"stock": 0}
    assert report.conforms
    assert {each.name for each in report.of(Verdict.NOT_RUN) if "--commit" in each.lacks} == {
        *(each.name for each in CHECKS if each.commits),
        "state-moves",
    }


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.target.__name__)
def test_a_broken_target_is_caught_by_the_check_for_it_and_by_no_other(fault: Fault) -> None:
    only = {fault.check} if fault.alone else {*NAMES} - SLOW
    report = check(fault.target(), only, seconds=fault.seconds)
    found = {each.name: each.wrong for each in report.of(Verdict.WRONG)}
    assert any(fault.says in words for words in found[fault.check]), found
    assert set(found) == {fault.check} | fault.also, found


def test_every_check_has_a_target_that_it_catches() -> None:
    assert {fault.check for fault in FAULTS} == set(NAMES)


@pytest.mark.parametrize(
    ("target", "applied", "says"),
    [
        (Counting, {2}, []),
        (NobodyWins, {0}, ["none of 4 commits at once {} was applied", "reads back as “open”"]),
        (WinsUnheard, {2}, ["none of 4 commits at once {} says that it", "answered 500 “broken"]),
        (WinsInSilence, {1}, ["no answer"]),
        (Races, {*range(4, 9)}, ["of 4 commits at once {} say that they applied it"]),
    ],
    ids=["it conforms", "nobody wins", "wins unheard", "wins in silence", "races"],
)
def test_what_commits_at_once_applied_is_told_as_it_is(
    target: type[Counting], applied: set[int], says: list[str]
) -> None:
    subject = target()
    report = check(subject, {"at-once"}, seconds=1.0 if target is WinsInSilence else 5.0)
    assert report.commits == subject.applied
    assert report.commits in applied
    words = " ".join(report.results[0].wrong)
    both = ("with one key", "with a key each")
    assert [one for one in says for how in both if one.format(how) not in words] == []
    assert bool(words) == bool(says)


@pytest.mark.parametrize(
    ("retention", "says"), [(None, "not declared"), (30.0, "the app's own retries need 120 s")]
)
def test_a_retention_that_is_not_declared_or_too_short_is_told(
    retention: float | None, says: str
) -> None:
    report = check(Counting(), {"key-retention"}, retention=retention)
    assert says in report.results[0].wrong[0]


def test_a_target_that_never_answers_ends_the_run_by_itself() -> None:
    began = time.monotonic()
    report = check(HangsAlways(), seconds=0.2)
    assert time.monotonic() - began < 20
    assert "no answer in time" in report.results[0].wrong[0]
    assert len(report.of(Verdict.NOT_RUN)) >= len(NAMES) - 3


def test_a_run_ends_when_its_time_is_over() -> None:
    report = check(Counting(), run_seconds=0.05)
    assert report.seconds < 10
    assert (report.cut_short, report.conforms) == ("the time for the whole run was over", False)
    assert any("the whole run was over" in each.lacks for each in report.of(Verdict.NOT_RUN))


class Paces(Counting):
    """Every fifth call is one too many."""

    seen = 0

    def answer(self, ask: Ask) -> Reply:
        self.seen += 1
        if self.seen % 5 == 0:
            return Reply(429, {"code": "slow-down"}, {"Retry-After": "0"})
        return super().answer(ask)


class PacesForEver(Counting):
    def answer(self, ask: Ask) -> Reply:
        return Reply(429, {"code": "slow-down"}, {"Retry-After": "0"})


def test_a_target_that_limits_the_pace_is_waited_for() -> None:
    report = check(Paces(), {*NAMES} - SLOW)
    assert [each.wrong for each in report.results if each.wrong] == []
    assert report.complete


def test_a_target_that_never_relents_is_no_finding() -> None:
    report = check(PacesForEver())
    assert "limits the pace of calls (429)" in report.stopped


class SlowClock(Counting):
    """Two seconds behind: its plans end later, by our clock."""

    def date(self) -> str | None:
        return formatdate(time.time() - 2, usegmt=True)

    def grow_old(self, plan: Plan) -> None:
        if plan.status == "open" and now() - timedelta(seconds=2) >= plan.expires_at:
            plan.status = "expired"


def test_a_plan_expires_by_the_clock_of_its_target() -> None:
    report = check(SlowClock(), {"expired", "expiry"})
    assert report.conforms
    assert report.complete


class OnceOnly(Counting):
    """What was granted cannot be granted again."""

    def dry_run(self, ask: Ask) -> Reply:
        if self.applied:
            raise Refusal(422, "nothing-to-change")
        return super().dry_run(ask)


class BrokenInside(Counting):
    def commit(self, ask: Ask) -> Reply:
        raise Refusal(500, "internal-error")


class Restless(Counting):
    """Its plans cover what moves by itself."""

    def has_moved(self, plan: Plan) -> bool:
        return True


def test_inputs_that_are_used_up_are_asked_for() -> None:
    report = check(OnceOnly(), {"commit", "at-once"}, moves=False)
    assert [each.lacks[:38] for each in report.results] == [
        "",
        "all inputs are true by now: give more ",
    ]


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (BrokenInside, "500 “internal-error” instead of 200; the target's log says why"),
        (Restless, "moved: does the plan cover what changes by itself"),
    ],
)
def test_why_a_fresh_plan_is_not_applied_is_hinted_at(target: type[Counting], says: str) -> None:
    (result,) = check(target(), {"commit"}).results
    assert says in result.wrong[0]


def test_what_a_check_lacks_is_said() -> None:
    report = check(Counting(), {"agent-commits"}, agent=False)
    assert report.results[0].lacks == "needs the agent's credential (--agent-credential)"

"""One run of the checks: bounded in time, and never ended by what a target says."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Final

from countersign_agent.conformance.bench import Bench, NotRun, Over, Wrong
from countersign_agent.conformance.catalogue import CHECKS, NAMES, Check
from countersign_agent.conformance.findings import Look, Report, Result, Verdict
from countersign_agent.conformance.planned import Planned
from countersign_agent.conformance.subject import Allowance, Subject
from countersign_agent.conformance.wire import Wire

NEEDS_COMMIT: Final = "needs --commit"
NO_PLAN: Final = "needs a plan, and the dry run gives none"
# Their first step needs no plan.
WITHOUT_PLAN: Final = frozenset({"dry-run", "clock"})
# What a person who set this up can mend: an address, a credential, inputs.
_OURS: Final = {
    401: "the target does not know the credential",
    403: "the credential may not make a dry run",
    404: "there is no dry run at this address: see --operation and --dry-run-path",
    405: "there is no dry run at this address: see --operation and --dry-run-path",
    422: "the target refuses these inputs",
}


def check_target(
    target: str,
    subject: Subject,
    wire: Wire,
    allowance: Allowance | None = None,
    only: Collection[str] = NAMES,
    progress: Callable[[Check], None] = lambda _: None,
) -> Report:
    """Run the contract's checks against a live target, in the order of the catalogue.

    `target` is its name in the report; `progress` hears of every check before it is made. Without
    `allowance.commits` nothing is applied. Raises nothing for what the target does;
    `Report.stopped` says why a run could not begin.
    """
    began, started_at = time.monotonic(), datetime.now(UTC)
    bench = Bench(subject, wire, allowance or Allowance())
    stopped, lacks = _begin(bench)
    chosen = [each for each in CHECKS if each.name in only]
    run = _Run(bench, lacks, progress)
    results = () if stopped else tuple(run.result_of(each) for each in chosen)
    return Report(
        target=target,
        operation=subject.operation,
        started_at=started_at,
        seconds=time.monotonic() - began,
        commits=bench.commits,
        results=results,
        stopped=stopped,
        cut_short=run.over,
    )


def _begin(bench: Bench) -> tuple[str, str]:
    """Why nothing can be checked, which is ours to mend; and what checks of plans lack."""
    if not bench.subject.inputs:
        return "there are no inputs to make a plan with", ""
    try:
        found = bench.plan_or_answer()
    except Over as end:
        return str(end), ""
    except Wrong:
        # Found out once: else every check would wait for the same silence.
        return "", NO_PLAN
    if isinstance(found, Planned):
        return "", ""
    if bench.is_settled(found):
        return "all inputs ask for what is true already: give others", ""
    if found.status in _OURS:
        return f"{_OURS[found.status]}: the dry run {bench.said(found)}", ""
    return "", NO_PLAN


class _Run:
    """The checks of one run, until something ends it."""

    def __init__(self, bench: Bench, lacks: str, progress: Callable[[Check], None]) -> None:
        self.bench, self.lacks, self.progress = bench, lacks, progress
        self.over = ""

    def result_of(self, check: Check) -> Result:
        """What came of one check, made or not."""
        lacks = self._lacks(check)
        if lacks:
            return _result(check, Verdict.NOT_RUN, lacks=lacks)
        self.progress(check)
        try:
            return _run(check, self.bench)
        except Over as end:
            self.over = str(end)
            if end.by_target:
                return _result(check, Verdict.WRONG, wrong=(self.over,))
            return _result(check, Verdict.NOT_RUN, lacks=self.over)

    def _lacks(self, check: Check) -> str:
        if check.commits and not self.bench.allowance.commits:
            return NEEDS_COMMIT
        if self.over:
            return self.over
        return "" if check.name in WITHOUT_PLAN else self.lacks


def _run(check: Check, bench: Bench) -> Result:
    wrong: list[str] = []
    look: list[str] = []
    try:
        for finding in check.run(bench):
            (look if isinstance(finding, Look) else wrong).append(finding)
    except NotRun as lack:
        if not wrong:
            return _result(check, Verdict.NOT_RUN, look=tuple(look), lacks=str(lack))
    except Wrong as fault:
        wrong.append(str(fault))
    verdict = Verdict.WRONG if wrong else Verdict.LOOK if look else Verdict.OK
    return _result(check, verdict, wrong=tuple(wrong), look=tuple(look))


def _result(
    check: Check,
    verdict: Verdict,
    *,
    wrong: tuple[str, ...] = (),
    look: tuple[str, ...] = (),
    lacks: str = "",
) -> Result:
    return Result(
        name=check.name,
        title=check.title,
        verdict=verdict,
        requirement=check.requirement,
        why=check.why,
        fix=check.fix,
        wrong=wrong,
        look=look,
        lacks=lacks,
    )

"""One run of the checks: bounded in time, and never ended by what a target says."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
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
) -> Report:
    """Run the contract's checks against a live target, in the order of the catalogue.

    `target` is its name in the report. Without `allowance.commits` nothing is applied. Raises
    nothing for what the target does; `Report.stopped` says why a run could not begin.
    """
    began, started_at = time.monotonic(), datetime.now(UTC)
    bench = Bench(subject, wire, allowance or Allowance())
    stopped, lacks = _begin(bench)
    chosen = [each for each in CHECKS if each.name in only]
    results = () if stopped else tuple(_run_all(chosen, bench, lacks))
    seconds = time.monotonic() - began
    return Report(target, subject.operation, started_at, seconds, bench.commits, results, stopped)


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


def _run_all(checks: Collection[Check], bench: Bench, lacks: str) -> Iterator[Result]:
    over = ""
    for check in checks:
        if over:
            yield _result(check, Verdict.NOT_RUN, lacks=over)
        elif check.commits and not bench.allowance.commits:
            yield _result(check, Verdict.NOT_RUN, lacks=NEEDS_COMMIT)
        elif lacks and check.name not in WITHOUT_PLAN:
            yield _result(check, Verdict.NOT_RUN, lacks=lacks)
        else:
            try:
                yield _run(check, bench)
            except Over as end:
                over = str(end)
                wrong = (over,) if end.by_target else ()
                verdict = Verdict.WRONG if wrong else Verdict.NOT_RUN
                yield _result(check, verdict, wrong=wrong, lacks="" if wrong else over)


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

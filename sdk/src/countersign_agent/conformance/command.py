"""`countersign-check-target`: runs the target's side of the contract against a live target.

Without --commit nothing is applied: plans are made, read, and left to expire. With it the inputs
really happen, about ten times; use a system, or an object, that can bear it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from countersign_agent.conformance.catalogue import CHECKS, Check
from countersign_agent.conformance.findings import Report, Verdict
from countersign_agent.conformance.options import Refused, Setting, parser, read
from countersign_agent.conformance.running import check_target
from countersign_agent.conformance.table import lines

CONFORMS, FINDINGS, NOT_RUN = 0, 1, 2
PROGRAM: Final = "countersign-check-target"


def main(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] | None = None
) -> int:
    """0: it conforms. 1: findings. 2: it could not run, and stderr says why."""
    options = parser(PROGRAM, __doc__ or "").parse_args(arguments)
    if options.list:
        print("\n".join(_catalogue()))
        return CONFORMS
    try:
        setting = read(options, os.environ if environment is None else environment)
    except Refused as fault:
        print(f"{PROGRAM}: {fault}", file=sys.stderr)
        return NOT_RUN
    if setting.in_clear:
        print(f"{PROGRAM}: over http:// the credentials travel readably", file=sys.stderr)
    return _check(setting, options)


def _check(setting: Setting, options: argparse.Namespace) -> int:
    try:
        report = check_target(
            setting.name,
            setting.subject,
            setting.wire,
            setting.allowance,
            setting.only,
            _progress if sys.stderr.isatty() else lambda _: None,
        )
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted; plans that were made expire by themselves", file=sys.stderr)
        return NOT_RUN
    finally:
        setting.wire.close()
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        print("\n".join(lines(report, shutil.get_terminal_size((88, 24)).columns)))
    return _code(report, everything=options.all)


def _progress(check: Check) -> None:
    """One line that the next overwrites, for who waits at a terminal."""
    print(f"\r\x1b[Kchecking {check.name} …", end="", file=sys.stderr, flush=True)


def _code(report: Report, *, everything: bool) -> int:
    if report.stopped:
        print(f"{PROGRAM}: {report.stopped}", file=sys.stderr)
        return NOT_RUN
    if report.of(Verdict.WRONG) or (everything and not report.complete):
        return FINDINGS
    if report.cut_short:
        print(f"{PROGRAM}: not finished: {report.cut_short}", file=sys.stderr)
        return NOT_RUN
    return CONFORMS


def _catalogue() -> Iterator[str]:
    for check in CHECKS:
        needs = " (needs --commit)" if check.commits else ""
        yield f"{check.name:<18}{check.title}{needs}. {check.why} ({check.requirement})"


if __name__ == "__main__":
    sys.exit(main())

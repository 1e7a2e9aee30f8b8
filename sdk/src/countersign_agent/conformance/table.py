"""The report for people: one line per check, then every finding with its why and its remedy."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from countersign_agent.conformance.findings import Report, Result, Verdict
from countersign_agent.conformance.quoting import visible

NARROWEST: Final = 48
WIDEST: Final = 100
_SAID: Final = {
    Verdict.OK: "ok",
    Verdict.LOOK: "look",
    Verdict.WRONG: "WRONG",
    Verdict.NOT_RUN: "not run",
}


def lines(report: Report, width: int) -> Iterator[str]:
    """The report in lines of at most `width` characters, where words allow."""
    width = max(NARROWEST, min(WIDEST, width))
    yield f"{visible(report.target)}, operation {visible(report.operation)}"
    if report.stopped:
        yield ""
        yield from _wrapped(f"Not checked: {report.stopped}.", width)
        return
    yield ""
    longest = max((len(each.name) for each in report.results), default=0)
    for result in report.results:
        yield from _row(result, longest, width)
    for result in report.results:
        if result.wrong or result.look:
            yield ""
            yield from _details(result, width)
    if report.of(Verdict.NOT_RUN):
        yield ""
        yield from _not_run(report, width)
    yield ""
    yield from _wrapped(_summary(report), width)


def _row(result: Result, longest: int, width: int) -> Iterator[str]:
    lead = f"{_SAID[result.verdict]:<8}{result.name:<{longest + 2}}"
    return _wrapped(result.title, width, lead)


def _not_run(report: Report, width: int) -> Iterator[str]:
    """Why, once for all checks that lack the same."""
    names: dict[str, list[str]] = {}
    for result in report.of(Verdict.NOT_RUN):
        names.setdefault(result.lacks, []).append(result.name)
    yield "Not run:"
    for lacks, checks in names.items():
        yield from _wrapped(f"{lacks} ({', '.join(checks)})", width, "  ")


def _details(result: Result, width: int) -> Iterator[str]:
    yield f"{result.name}: {result.title}"
    for words in result.wrong:
        yield from _wrapped(_capital(words), width, "  what is wrong   ")
    for words in result.look:
        yield from _wrapped(_capital(words), width, "  worth a look    ")
    yield from _wrapped(f"{result.why} ({result.requirement})", width, "  why it matters  ")
    yield from _wrapped(result.fix, width, "  how to fix it   ")


def _summary(report: Report) -> str:
    count = {verdict: len(report.of(verdict)) for verdict in Verdict}
    if count[Verdict.WRONG]:
        head = f"{_checks(count[Verdict.WRONG])} found something wrong"
    elif report.complete:
        head = "The target conforms to all of the contract"
    elif report.cut_short:
        head = f"Not finished, because {report.cut_short}"
    else:
        head = "The target conforms as far as it was checked"
    made = len(report.results) - count[Verdict.NOT_RUN]
    parts = [f"{head}: {made} of {_checks(len(report.results))} made"]
    if report.commits:
        parts.append(f"{report.commits} plans applied")
    return ", ".join([*parts, f"in {report.seconds:.1f} s"]) + "."


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _checks(number: int) -> str:
    return f"{number} check" + ("" if number == 1 else "s")


def _wrapped(text: str, width: int, lead: str = "") -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        width,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_on_hyphens=False,
    ) or [lead.rstrip()]

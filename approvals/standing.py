"""Where the approvals of a plan stand: who gave one, who can, who cannot and why (B-6, B-7)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from approvals.models import Decision
from approvals.papers import REVIEWERS_NAMED, Papers, Reviewer
from approvals.policies import quorum
from approvals.policies.demands import Demands
from approvals.rendering import prose


@dataclass(frozen=True, slots=True)
class Given:
    """One decision of this round; `fault`: why an approval does not count."""

    decision: Decision
    fault: str


@dataclass(frozen=True, slots=True)
class Approvals:
    """`needs`: `2 of reviewers`; `asks`: what the policies want beside people."""

    given: int
    required: int
    needs: str
    open: str
    standing: list[Given]
    can: list[str]
    cannot: list[tuple[str, str]]
    more: bool
    too_few: bool
    policies: list[str]
    asks: list[str]
    unclear: list[tuple[str, str]]
    withheld: list[tuple[str, str]]


def approvals(papers: Papers) -> Approvals:
    """Everything that the section says, of this moment."""
    demands, tally = papers.demands, papers.tally
    able, unable = _sorted(papers)
    everybody = tally.people | {reviewer.pk: reviewer.groups for reviewer in able}
    most = len(quorum.seated(demands.seats, everybody))
    more = len(papers.reviewers) > REVIEWERS_NAMED
    return Approvals(
        given=tally.given,
        required=demands.approvals_required,
        needs=_needs(demands, papers.groups),
        open=_(" or ").join(tally.still_open) if demands.groups and tally.given else "",
        standing=[Given(d, tally.faults.get(d.pk, "")) for d in papers.standing],
        can=[reviewer.name for reviewer in able],
        cannot=unable,
        more=more,
        too_few=most < demands.approvals_required and not more,
        policies=list(demands.policies),
        asks=asks(demands),
        unclear=_readable(demands.unclear),
        withheld=_readable(demands.withheld),
    )


def _sorted(papers: Papers) -> tuple[list[Reviewer], list[tuple[str, str]]]:
    """Reviewers whose approval would count, and the others with the reason; not who decided."""
    decided = {decision.person_id for decision in papers.standing}
    agent, able, unable = papers.plan.agent, [], []
    for reviewer in papers.reviewers[:REVIEWERS_NAMED]:
        if reviewer.pk in decided:
            continue
        if reviewer.pk == agent.owner_id:
            unable.append((reviewer.name, _("cannot: owns {agent}").format(agent=agent.name)))
        elif not papers.tally.would_count(reviewer.groups):
            wanted = _(" or ").join(papers.tally.still_open)
            unable.append(
                (reviewer.name, _("cannot approve: is not in {wanted}").format(wanted=wanted))
            )
        else:
            able.append(reviewer)
    return able, unable


def _needs(demands: Demands, groups: Iterable[str]) -> str:
    """`2 of reviewers and 1 of leads`; without a policy, of the target's groups."""
    if not demands.groups:
        return _of(demands.approvals_required, ", ".join(groups))
    return people(demands)


def people(demands: Demands) -> str:
    """`2 of reviewers and 1 of leads`; empty where no policy names a group."""
    return _(" and ").join(_of(count, group) for group, count in demands.groups.items())


def _of(count: int, group: str) -> str:
    return _("{count} of {group}").format(count=count, group=group)


def asks(demands: Demands) -> list[str]:
    """What each approval needs beside the right person."""
    found = [_("a note")] if demands.note else []
    if demands.step_up:
        found.append(_("a sign-in within the last five minutes"))
    if demands.expand_first:
        found.append(_("every change opened, one by one"))
    if demands.dwell_seconds:
        found.append(_("a look of at least {number} s").format(number=demands.dwell_seconds))
    return found


def _readable(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(prose(name), prose(words)) for name, words in pairs]

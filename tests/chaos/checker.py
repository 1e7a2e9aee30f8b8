"""The judge of a history: billing's ledger against what Countersign says. Pure: reads nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Final

from plans.status import TERMINAL, Status

NOT_APPLIED: Final = frozenset(TERMINAL - {Status.COMMITTED})
# Where a plan that people decided on may be at the end; anything else still waits for a machine.
ENDED: Final = frozenset(TERMINAL | {Status.UNRESOLVED})
# A read-back that is lost with its worker is made again after 15 s; thrice that, and some air.
VERIFYING_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Effect:
    """One line of billing's ledger."""

    plan_id: str
    key: str
    cents: int


@dataclass(frozen=True, slots=True)
class Story:
    """One plan as Countersign tells it, once everything is quiet.

    `trail` is the last status in the audit trail; `outcomes` are those of its attempts, in order;
    `settled_after` is in seconds since the approval, None: it was not approved, or is not over.
    """

    plan_id: str
    key: str
    cents: int
    status: str
    trail: str
    outcomes: tuple[str, ...] = ()
    approvals: int = 0
    settled_after: float | None = None
    # Seconds that the plan has had its status, by PostgreSQL's clock.
    stands: float = 0.0

    @property
    def faulted(self) -> bool:
        """Whether at least one attempt ended without the target's own final word."""
        return any(each in {"open", "unknown", "not_sent", "retry_later"} for each in self.outcomes)


@dataclass(frozen=True, slots=True)
class History:
    """What is left of one run. `acknowledged`: plans whose approval a reviewer was told of."""

    ledger: tuple[Effect, ...]
    stories: tuple[Story, ...]
    acknowledged: frozenset[str] = frozenset()
    # Seconds from the last fault to this look.
    calm_for: float = 0.0
    chain_holds: bool = True
    # Why `verify_audit` objects; printed with the finding.
    chain_report: str = ""


@dataclass(slots=True)
class Verdict:
    """What the judge found, by invariant; empty lists: all of them hold."""

    double_applies: list[str] = field(default_factory=list)
    wrong_statuses: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    lost_approvals: list[str] = field(default_factory=list)
    broken_chain: list[str] = field(default_factory=list)

    @property
    def findings(self) -> list[str]:
        return [
            *self.double_applies,
            *self.wrong_statuses,
            *self.stuck,
            *self.lost_approvals,
            *self.broken_chain,
        ]


def judge(history: History) -> Verdict:
    """Hold the five invariants of 5-faults against a history, and that no approval is lost."""
    return Verdict(
        double_applies=list(_double_applies(history.ledger)),
        wrong_statuses=[*_wrong_statuses(history), *_strangers(history)],
        stuck=list(_stuck(history)),
        lost_approvals=list(_lost_approvals(history)),
        broken_chain=[] if history.chain_holds else [f"the chain: {history.chain_report}"],
    )


def _double_applies(ledger: Iterable[Effect]) -> Iterator[str]:
    """Invariant 1, by plan and by key: a key that moved two plans is as bad."""
    for what in ("plan_id", "key"):
        counts = Counter(getattr(effect, what) for effect in ledger)
        yield from (f"{what} {name}: applied {n} times" for name, n in counts.items() if n > 1)


def _wrong_statuses(history: History) -> Iterator[str]:
    """Invariants 2 and 3; and the trail must tell what the plan's own row tells."""
    applied = {effect.plan_id: effect for effect in history.ledger}
    for story in history.stories:
        effect = applied.get(story.plan_id)
        if story.status == Status.COMMITTED and effect is None:
            yield f"plan {story.plan_id}: committed, and nothing was applied"
        if story.status in NOT_APPLIED and effect is not None:
            yield f"plan {story.plan_id}: {story.status}, and it was applied"
        if effect is not None and (effect.key, effect.cents) != (story.key, story.cents):
            yield f"plan {story.plan_id}: applied with another key or amount"
        # A plan that is being read back has not moved yet, so the trail names no status.
        if (story.trail or Status.VERIFYING) != story.status:
            yield f"plan {story.plan_id}: {story.status}, but the trail ends in {story.trail}"


def _strangers(history: History) -> Iterator[str]:
    """Effects of plans that Countersign does not know, or that nobody approved."""
    approved = {story.plan_id for story in history.stories if story.approvals}
    for effect in history.ledger:
        if effect.plan_id not in approved:
            yield f"plan {effect.plan_id}: applied, and nobody approved it"


def _stuck(history: History) -> Iterator[str]:
    """Invariant 4: what was decided or sent came to an end. `pending` waits for people.

    A plan that is re-planned again and again always has a young revision in `verifying`; one that
    has stood there without a fault for longer than any read-back may take is forgotten.
    """
    waits = (Status.APPROVED, Status.COMMITTING, Status.UNKNOWN)
    for story in history.stories:
        unbroken = min(story.stands, history.calm_for)
        forgotten = story.status == Status.VERIFYING and unbroken > VERIFYING_SECONDS
        if story.status in waits or forgotten:
            yield f"plan {story.plan_id}: still {story.status}"


def _lost_approvals(history: History) -> Iterator[str]:
    """Told to a reviewer and not recorded; or recorded and without an end."""
    stories = {story.plan_id: story for story in history.stories}
    for plan_id in sorted(history.acknowledged):
        if plan_id not in stories or not stories[plan_id].approvals:
            yield f"plan {plan_id}: a reviewer was told of an approval that is not there"
    for story in history.stories:
        if story.approvals and story.status not in ENDED:
            yield f"plan {story.plan_id}: approved, and it is {story.status}"


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run is remembered by; times are in seconds."""

    plans: int
    commits: int
    faulted: int
    committed: int
    unresolved: int
    p50: float
    p95: float


def figures(history: History) -> Figures:
    """Count commits (plans that were sent at least once) and those that went wrong on the way."""
    sent = [story for story in history.stories if story.outcomes]
    times = [story.settled_after for story in sent if story.settled_after is not None]
    cuts = quantiles(times, n=20, method="inclusive") if len(times) > 1 else (times or [0.0]) * 19
    statuses = Counter(story.status for story in history.stories)
    return Figures(
        plans=len(history.stories),
        commits=len(sent),
        faulted=sum(story.faulted for story in sent),
        committed=statuses[Status.COMMITTED],
        unresolved=statuses[Status.UNRESOLVED],
        p50=cuts[9],
        p95=cuts[18],
    )

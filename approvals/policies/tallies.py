"""The recorded approvals of a plan, held against what is demanded (B-6, T-3, SEC-8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Final

from django.contrib.auth.models import Group
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import BigIntegerField, Exists, IntegerField, OuterRef, QuerySet
from django.utils.translation import gettext as _

from approvals.models import Decision
from approvals.policies import quorum
from approvals.policies.demands import Demands
from audit.statements import Slot, Statement
from plans.models import Plan


@dataclass(frozen=True, slots=True)
class Vote:
    """One approval of this round; `fault`: why it does not count, as the end of a sentence."""

    decision: Decision
    groups: frozenset[str]
    fault: str = ""

    @property
    def name(self) -> str:
        return self.decision.person.get_username()


@dataclass(frozen=True)
class Tally:
    """Votes in their order, and how many distinct people they are of the quorum."""

    demands: Demands
    votes: Sequence[Vote]

    @cached_property
    def people(self) -> dict[int, frozenset[str]]:
        return {v.decision.person_id: v.groups for v in self.votes if not v.fault}

    @cached_property
    def given(self) -> int:
        return len(quorum.seated(self.demands.seats, self.people))

    @property
    def complete(self) -> bool:
        return self.given >= self.demands.approvals_required

    @property
    def still_open(self) -> list[str]:
        return quorum.still_open(self.demands.seats, self.people)

    @property
    def faults(self) -> dict[int, str]:
        """Decision → why it does not count."""
        return {vote.decision.pk: vote.fault for vote in self.votes if vote.fault}

    def would_count(self, groups: frozenset[str]) -> bool:
        """Whether one more person of these groups brings the plan nearer to its approval."""
        return self.complete or quorum.counts(self.demands.seats, self.people, groups)

    def not_needed(self) -> str:
        """What is said to a person whose approval would not count."""
        groups = _(" or ").join(self.still_open)
        text = _("Your approval would not count: it needs somebody of {groups}.")
        return text.format(groups=groups)

    def complaint(self) -> str:
        """Why it is not complete: the first reason that has a name, else the count."""
        for vote in self.votes:
            if vote.fault:
                return f"{vote.name} approved, but {vote.fault}."
        needed = self.demands.approvals_required
        return f"{self.given} of {needed} approvals were given on what is shown now."


def _approvals() -> QuerySet[Decision]:
    """Each with what its person may do now: `reviews` this target, `group_names`."""
    plan, target = Slot("plan", BigIntegerField()), Slot("target", BigIntegerField())
    groups = Group.objects.filter(user=OuterRef("person"))
    return (
        Decision.objects.filter(plan=plan, verdict=Decision.Verdict.APPROVE)
        .filter(round=Slot("round", IntegerField()))
        .select_related("person")
        .annotate(
            reviews=Exists(groups.filter(reviewed_targets=target)),
            group_names=ArraySubquery(groups.order_by("name").values("name")),
        )
        .order_by("id")
    )


_APPROVALS: Final = Statement(_approvals)


def tally(plan: Plan, demands: Demands, digest: str) -> Tally:
    """The approvals of the plan's round on what has this digest: one query, all of this moment."""
    rows = _APPROVALS.all(plan=plan.pk, round=plan.round, target=plan.target_id)
    return Tally(demands, [_vote(plan, demands, digest, row) for row in rows])


def _vote(plan: Plan, demands: Demands, digest: str, row: Decision) -> Vote:
    groups: list[str] = row.group_names  # type: ignore[attr-defined]  # annotated above
    return Vote(
        row, frozenset(groups), _not_entitled(plan, row) or _not_as_asked(demands, digest, row)
    )


def _not_entitled(plan: Plan, row: Decision) -> str:
    if not row.person.is_active:
        return _("is not active any more")
    if row.person_id == plan.agent.owner_id:
        return _("owns {agent}").format(agent=plan.agent.name)
    if not row.reviews:  # type: ignore[attr-defined]  # annotated in tally()
        return _("does not review {target} any more").format(target=plan.target.name)
    return ""


def _not_as_asked(demands: Demands, digest: str, row: Decision) -> str:
    if row.shown_digest != digest:
        return _("was shown something else")
    if demands.note and not row.note:
        return _("gave no note, which a policy asks for")
    if demands.step_up and not row.stepped_up:
        return _("had not signed in shortly before, which a policy asks for")
    if demands.expand_first and not row.opened:
        return _("did not open every change, which a policy asks for")
    looked = row.decided_at - row.shown_at if row.shown_at else timedelta()
    if looked < timedelta(seconds=demands.dwell_seconds):
        text = _("looked for less than {number} s, which a policy asks for")
        return text.format(number=demands.dwell_seconds)
    return ""

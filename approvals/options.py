"""What this person may do with a plan now; the verbs check it again under their locks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from django.utils.translation import gettext as _

from approvals.models import Decision
from approvals.oversight import denied_words
from approvals.papers import Papers
from plans import intents
from plans.models import Attempt, Intent, Operation, Replan
from plans.status import Status

# Statuses that go on without the reader: the page asks again by itself.
MOVING: Final = frozenset(
    {Status.VERIFYING, Status.PENDING, Status.APPROVED, Status.COMMITTING, Status.UNKNOWN}
)


@dataclass(frozen=True)
class Options:
    papers: Papers

    @property
    def unconfirmed(self) -> str:
        """Why nobody can approve it, though it waits; empty: it is confirmed, or need not be."""
        plan = self.papers.plan
        if plan.verified or plan.target.allow_unverified:
            return ""
        return _("{target} does not allow plans to be approved that it cannot confirm.").format(
            target=plan.target.name
        )

    @property
    def denied(self) -> str:
        """The sentence that names the policy which lets nobody approve it; or empty."""
        denied_by = self.papers.demands.denied_by
        return denied_words(denied_by[0]) if denied_by else ""

    @cached_property
    def cannot_approve(self) -> str:
        """Why this person cannot approve it, though they may decide; empty: they can."""
        return self.unconfirmed or self.denied or self._not_counted

    @property
    def _not_counted(self) -> str:
        me = next((r for r in self.papers.reviewers if r.pk == self.papers.person.pk), None)
        if me is None or self.papers.tally.would_count(me.groups):
            return ""
        return self.papers.tally.not_needed()

    @property
    def completes(self) -> bool:
        """Whether an approval of this person is the last one, so that the commit leaves at once."""
        return self.papers.tally.given + 1 >= self.papers.demands.approvals_required

    @property
    def ordinal(self) -> int:
        """Which of the approvals this person's would be."""
        return self.papers.tally.given + 1

    @property
    def may_decide(self) -> bool:
        return self.papers.pending and self.papers.objection is None and not self.papers.mine

    @property
    def may_withdraw(self) -> bool:
        """Until the quorum is met, and then until something may have been sent (B-9)."""
        mine = self.papers.mine
        if mine is None or mine.verdict != Decision.Verdict.APPROVE:
            return False
        sent = any(a.outcome != Attempt.Outcome.NOT_SENT for a in self.papers.attempts)
        unsent = not sent and self.papers.plan.status in (Status.APPROVED, Status.COMMITTING)
        return self.papers.pending or unsent

    @property
    def may_plan_again(self) -> bool:
        """A dead plan that nothing follows yet, for a person who could decide (R-1, R-3)."""
        plan = self.papers.plan
        closed = (Intent.Status.ABANDONED, Intent.Status.SETTLED)
        again = plan.status in (Status.FAILED, Status.REJECTED, Status.MISMATCHED)
        parked = plan.intent.status == Intent.Status.PARKED
        waits = self.papers.replan is not None and self.papers.replan.status in Replan.WAITING
        free = self.papers.latest is None and plan.intent.status not in closed
        return (
            self.papers.objection is None
            and free
            and (parked or waits or again)
            and plan.is_terminal
        )

    @property
    def parked(self) -> bool:
        return self.papers.plan.intent.status == Intent.Status.PARKED and self.may_plan_again

    @property
    def ageing(self) -> bool:
        """R-4: for a person who may decide, and would have to hurry."""
        return self.may_decide and intents.is_ageing(self.papers.plan, self.papers.now)

    @property
    def renews_itself(self) -> bool:
        return self.ageing and self.papers.plan.operation.replan == Operation.ReplanMode.SERVER

    @property
    def renewing(self) -> bool:
        return self.papers.waiting is not None and self.papers.plan.status == Status.PENDING

    @property
    def moving(self) -> bool:
        """Whether the page should look again by itself: something else will happen."""
        waits = self.papers.replan is not None and self.papers.replan.status in Replan.WAITING
        return self.papers.plan.status in MOVING or (waits and self.papers.latest is None)

    @property
    def goes_on(self) -> bool:
        """Whether there is a place where the bar was: for the way on, and for a note begun."""
        return self.papers.latest is not None or self.papers.objection is None

    @property
    def awaits(self) -> str:
        """What a plan whose time is over waits for, in words; empty: nothing comes by itself."""
        over = self.papers.closing or self.papers.plan.is_terminal
        if not over or not self.moving:
            return ""
        if self.papers.replan is not None and self.papers.replan.mode == "agent":
            return _("{agent} was asked for a fresh plan. It will be shown here.").format(
                agent=self.papers.plan.agent.name
            )
        return _("A fresh plan is being made. It will be shown here.")

"""What people are shown, what they must satisfy, and whether they still do (T-3, B-7, B-10)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.db import models, transaction
from django.db.models import QuerySet

from approvals import titles
from approvals.digest import shown_digest
from approvals.likeness import likeness
from approvals.models import Decision
from approvals.policies import judging
from approvals.policies.judging import Judgement, judge
from approvals.policies.tallies import tally
from audit import actors
from audit.actions import Action
from audit.recording import record
from audit.statements import Slot, Statement
from plans.models import Plan
from plans.oversight import RISK_RANK, Assessment, Wish
from plans.status import Status


class ReviewOversight:
    """The registered oversight (plans.oversight.Oversight)."""

    def objection_to_wish(self, wish: Wish) -> str | None:
        """The policy that denies what the agent says itself (B-7); None: it may be submitted."""
        name = judging.denial(wish)
        return None if name is None else denied_words(name)

    def assess(self, plan: Plan) -> Assessment:
        """Title, risk and demands of the plan as it stands now, with the digest over them (B-2).

        `plan.actions`, `plan.verification` and `plan.inputs_confirmed` must already be what will
        be stored.
        """
        found = judge(plan)
        version, required = found.demands.version, found.demands.approvals_required
        shown = Assessment(titles.title(plan), "", found.risk, version, required, "")
        return Assessment(
            title=shown.title,
            asked=titles.asked(plan),
            risk=found.risk,
            policy_version=version,
            approvals_required=required,
            digest=shown_digest(plan, shown),
            demands=found.demands.snapshot(),
            likeness=likeness(plan, found.risk, version),
        )

    def objection_to_sending(self, plan: Plan) -> str | None:
        """Why the recorded approvals no longer suffice, in words; None: send (T-3, SEC-8).

        Called in the transaction that is about to insert an attempt: two queries.
        """
        found = judge(plan)
        if not _shows_the_same(plan, found):
            return "What was approved is not what would be sent now."
        if not plan.verified and not plan.target.allow_unverified:
            return f"{plan.target.name} does not allow unverified plans any more."
        if found.demands.denied_by:
            return denied_words(found.demands.denied_by[0])
        given = tally(plan, found.demands, plan.digest)
        return None if given.complete else given.complaint()

    def last_decisions(self, plans: Iterable[Plan]) -> dict[int, dict[str, Any]]:
        """The latest verdict on each plan by its pk: {verdict, note, by (username), at}."""
        pks = [plan.pk for plan in plans]
        latest = _LAST.all(plan=pks[0]) if len(pks) == 1 else _last_decisions(plan__in=pks)
        return {decision.plan_id: _shown(decision) for decision in latest}


def _last_decisions(**which: Any) -> QuerySet[Decision]:
    latest = Decision.objects.filter(**which).order_by("plan", "-pk").distinct("plan")
    return latest.select_related("person")


_LAST: Final = Statement(lambda: _last_decisions(plan=Slot("plan", models.BigIntegerField())))


def denied_words(policy: str) -> str:
    return f"The policy “{policy}” does not allow such a plan."


def current(plan: Plan) -> Plan:
    """The plan with its stored assessment brought up to the configuration of now.

    A template, a risk or a policy may have been edited since the plan was verified; what a page
    shows is worked out afresh, so the stored digest must be too, or nobody could ever approve.
    """
    if plan.status != Status.PENDING or ReviewOversight().assess(plan).digest == plan.digest:
        return plan
    with transaction.atomic():
        locked = Plan.objects.locked(plan.pk)
        found = ReviewOversight().assess(locked)
        if locked.status == Status.PENDING and found.digest != locked.digest:
            _reassess(locked, found)
    return Plan.objects.named(plan.pk)


def _reassess(plan: Plan, found: Assessment) -> None:
    """Approvals of what was shown before are void, so their people are asked again (B-11)."""
    columns = found.columns()
    voided = Decision.objects.filter(plan=plan, round=plan.round).count()
    if voided:
        columns |= {"round": plan.round + 1, "approvals_given": 0}
    Plan.objects.filter(pk=plan.pk).update(**columns)
    details = {
        "reason": "policies or configuration were changed",
        "digest": found.digest,
        "risk": found.risk,
        "policy_version": found.policy_version,
        "voided_approvals": voided,
    }
    record(Action.PLAN_REASSESSED, actors.POLICIES, plan.subject(), details)


def _shows_the_same(plan: Plan, found: Judgement) -> bool:
    """Whether the facts are those that were approved, under policies that may have changed.

    A risk that has become higher was not shown to anybody; one that has become lower may pass.
    """
    lower = RISK_RANK[found.risk] >= RISK_RANK[plan.risk]
    risk = plan.risk if lower else found.risk
    version, required = plan.policy_version, plan.approvals_required
    shown = Assessment(titles.title(plan), "", risk, version, required, "")
    return shown_digest(plan, shown) == plan.digest


def _shown(decision: Decision) -> dict[str, Any]:
    return {
        "verdict": decision.verdict,
        "note": decision.note,
        "by": decision.person.get_username(),
        "at": decision.decided_at,
    }

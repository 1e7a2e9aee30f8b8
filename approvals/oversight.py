"""What people are shown, what they must satisfy, and whether they still do (T-3, B-7, B-10).

The demands are built in for now: one approval by a reviewer of the target.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Exists, OuterRef

from approvals import titles
from approvals.digest import shown_digest
from approvals.models import Decision
from plans.models import Operation, Plan
from plans.oversight import Assessment
from plans.status import Status

POLICY_VERSION: Final = "builtin-1"
APPROVALS_REQUIRED: Final = 1
# Ranks of plans.risk_rank: what comes first in the queue.
RISK_RANK: Final[dict[str, int]] = {
    Operation.Risk.CRITICAL: 0,
    Operation.Risk.HIGH: 1,
    Operation.Risk.MEDIUM: 2,
    Operation.Risk.LOW: 3,
}


class ReviewOversight:
    """The registered oversight (plans.oversight.Oversight)."""

    def assess(self, plan: Plan) -> Assessment:
        """Title, risk and demands of the plan as it stands now, with the digest over them (B-2).

        `plan.actions` and `plan.verification` must already be what will be stored.
        """
        title, risk = titles.title(plan), risk_of(plan)
        shown = Assessment(title, "", risk, POLICY_VERSION, APPROVALS_REQUIRED, "")
        return Assessment(
            title=title,
            asked=titles.asked(plan),
            risk=risk,
            policy_version=POLICY_VERSION,
            approvals_required=APPROVALS_REQUIRED,
            digest=shown_digest(plan, shown),
        )

    def objection_to_sending(self, plan: Plan) -> str | None:
        """Why the recorded approvals no longer suffice, in words; None: send (T-3, SEC-8).

        Called in the transaction that is about to insert an attempt: two queries at most.
        """
        if self.assess(plan).digest != plan.digest:
            return "What was approved is not what would be sent now."
        if not plan.verified and not plan.target.allow_unverified:
            return f"{plan.target.name} does not allow unverified plans any more."
        approvals = Decision.objects.filter(
            plan=plan, round=plan.round, verdict=Decision.Verdict.APPROVE
        )
        counted = approvals.filter(
            _reviews(plan), shown_digest=plan.digest, person__is_active=True
        ).exclude(person=plan.agent.owner_id)
        if counted.values("person").distinct().count() >= plan.approvals_required:
            return None
        return _what_is_missing(plan, [d.person for d in approvals.select_related("person")])

    def last_decisions(self, plans: Iterable[Plan]) -> dict[int, dict[str, Any]]:
        """The latest verdict on each plan by its pk: {verdict, note, by (username), at}."""
        latest = (
            Decision.objects.filter(plan__in=[plan.pk for plan in plans])
            .order_by("plan", "-pk")
            .distinct("plan")
            .select_related("person")
        )
        return {decision.plan_id: _shown(decision) for decision in latest}


def current(plan: Plan) -> Plan:
    """The plan with its stored assessment brought up to the configuration of now.

    A template, a format or a risk may have been edited since the plan was verified; what a page
    shows is worked out afresh, so the stored digest must be too, or nobody could ever approve.
    """
    if plan.status != Status.PENDING or ReviewOversight().assess(plan).digest == plan.digest:
        return plan
    with transaction.atomic():
        locked = Plan.objects.locked(plan.pk)
        found = ReviewOversight().assess(locked)
        if locked.status == Status.PENDING:
            Plan.objects.filter(pk=plan.pk).update(
                title=found.title,
                asked=found.asked,
                risk=found.risk,
                risk_rank=RISK_RANK[found.risk],
                policy_version=found.policy_version,
                approvals_required=found.approvals_required,
                digest=found.digest,
            )
    return Plan.objects.with_names().get(pk=plan.pk)


def _shown(decision: Decision) -> dict[str, Any]:
    return {
        "verdict": decision.verdict,
        "note": decision.note,
        "by": decision.person.get_username(),
        "at": decision.decided_at,
    }


def risk_of(plan: Plan) -> str:
    """The operation's risk; at least high where nothing could be read back (B-10)."""
    risk = plan.operation.risk
    if not plan.verified and RISK_RANK[risk] > RISK_RANK[Operation.Risk.HIGH]:
        return Operation.Risk.HIGH.value
    return risk


def _reviews(plan: Plan) -> Exists:
    """The decision's person is, now, in a group that reviews the plan's target."""
    groups = Group.objects.filter(user=OuterRef("person"), reviewed_targets=plan.target_id)
    return Exists(groups)


def _what_is_missing(plan: Plan, people: list[User]) -> str:
    """The first reason that a page can tell; a person without any is counted as a reviewer."""
    for person in people:
        name = person.get_username()
        if not person.is_active:
            return f"{name} approved, but is not active any more."
        if person.pk == plan.agent.owner_id:
            return f"{name} approved, but owns {plan.agent.name}."
        if not person.groups.filter(reviewed_targets=plan.target_id).exists():
            return f"{name} approved, but does not review {plan.target.name} any more."
    return f"{len(people)} of {plan.approvals_required} approvals were given on what is shown now."

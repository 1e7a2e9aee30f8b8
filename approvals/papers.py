"""The rows behind the page of a plan, read in a fixed number of queries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, cast

from django.contrib.auth.models import Group, User
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import BigIntegerField, Exists, OuterRef, QuerySet, UUIDField

from approvals import access
from approvals.models import Comment, Decision
from approvals.oversight import ReviewOversight
from approvals.policies.demands import Demands
from approvals.policies.tallies import Tally, tally
from audit.figures import Lines
from audit.models import Event
from audit.statements import Slot, Statement
from plans import emergency, health
from plans.clock import clock
from plans.health import Health
from plans.models import Attempt, EmergencyStop, Evidence, Plan, Replan
from plans.oversight import Assessment
from plans.status import Status

REVIEWERS_NAMED: Final = 30
OTHERS_NAMED: Final = 5
EVENTS_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Reviewer:
    """An active person who reviews the plan's target, and the groups of this moment."""

    pk: int
    name: str
    groups: frozenset[str]


@dataclass(frozen=True)
class Papers:
    """Rows as read, with what follows from them alone."""

    plan: Plan
    person: User
    now: datetime
    objection: str | None
    all_revisions: list[Plan]
    attempts: list[Attempt]
    evidence_rows: list[Evidence]
    comments: list[Comment]
    events: list[Event]
    others: list[Plan]
    waiting: Replan | None
    reviewers: list[Reviewer]
    groups: list[str]
    stop: EmergencyStop | None
    health: Health

    @cached_property
    def assessment(self) -> Assessment:
        """As it stands now while people decide; afterwards the snapshot is the history."""
        plan = self.plan
        if plan.status == Status.PENDING:
            return ReviewOversight().assess(plan)
        return Assessment(
            title=plan.title,
            asked=plan.asked,
            risk=plan.risk,
            policy_version=plan.policy_version,
            approvals_required=plan.approvals_required,
            digest=plan.digest,
            demands=plan.demands,
        )

    @cached_property
    def demands(self) -> Demands:
        """What approvals must satisfy, as the page says it."""
        now = self.assessment
        return Demands.read(now.demands, now.approvals_required, now.policy_version)

    @cached_property
    def tally(self) -> Tally:
        """The standing approvals, held against the demands; none: nothing is read."""
        if not any(d.verdict == Decision.Verdict.APPROVE for d in self.standing):
            return Tally(self.demands, [])
        return tally(self.plan, self.demands, self.assessment.digest)

    @cached_property
    def decide_in_ms(self) -> int:
        return max(0, int((self.plan.decide_by - self.now).total_seconds() * 1000))

    @property
    def window_ms(self) -> int:
        return self.plan.window_ms

    @property
    def pending(self) -> bool:
        return self.plan.status == Status.PENDING and self.decide_in_ms > 0

    @property
    def closing(self) -> bool:
        """Its time is over, and the clock's own transition is a second away."""
        return self.plan.status == Status.PENDING and self.decide_in_ms == 0

    @cached_property
    def decisions(self) -> list[Decision]:
        return self.decisions_of(self.plan)

    def decisions_of(self, plan: Plan) -> list[Decision]:
        own = next((p for p in self.all_revisions if p.pk == plan.pk), plan)
        return sorted(own.decisions.all(), key=lambda decision: decision.pk)

    @property
    def standing(self) -> list[Decision]:
        """The decisions of this round; a page that shows something else begins a new one (B-11)."""
        if self.plan.status == Status.PENDING and self.assessment.digest != self.plan.digest:
            return []
        return [d for d in self.decisions if d.round == self.plan.round]

    @property
    def mine(self) -> Decision | None:
        """This person's verdict in this round."""
        return next((d for d in self.standing if d.person_id == self.person.pk), None)

    @cached_property
    def successor(self) -> Plan | None:
        return next((p for p in self.all_revisions if p.replaces_id == self.plan.pk), None)

    @property
    def latest(self) -> Plan | None:
        """The newest revision, where this one has been replaced."""
        last = self.all_revisions[-1] if self.all_revisions else None
        return last if last and last.revision > self.plan.revision else None

    @cached_property
    def replan(self) -> Replan | None:
        """What comes after this plan: its own re-plan, or the one that its intent waits for."""
        own = next((p for p in self.all_revisions if p.pk == self.plan.pk), self.plan)
        replan: Replan | None = getattr(own, "replan", None)
        return replan or (self.waiting if self.latest is None else None)


def read(plan: Plan, person: User) -> Papers:
    """The papers of a plan that this person may see: fifteen queries, whatever it holds."""
    of_plan, of_target, of_intent = {"pk": plan.pk}, {"pk": plan.target_id}, {"pk": plan.intent_id}
    return Papers(
        plan=plan,
        person=person,
        now=clock(),
        objection=access.objection(person, plan),
        all_revisions=_revisions(plan),
        attempts=_ATTEMPTS.all(**of_plan),
        evidence_rows=_EVIDENCE.all(**of_plan),
        comments=_COMMENTS.all(**of_plan),
        events=_EVENTS.all(**of_intent),
        others=_others(plan),
        waiting=_WAITING.first(**of_intent),
        reviewers=[Reviewer(pk, name, frozenset(g)) for pk, name, g in _REVIEWERS.all(**of_target)],
        groups=[name for (name,) in _GROUPS.all(**of_target)],
        stop=emergency.current(),
        health=health.of([plan.target_id])[plan.target_id],
    )


_PK: Final = Slot("pk", BigIntegerField())
_INTENT: Final = Slot("pk", UUIDField())
_ATTEMPTS: Final = Statement(lambda: Attempt.objects.filter(plan=_PK))
_EVIDENCE: Final = Statement(lambda: Evidence.objects.filter(plan=_PK))
_COMMENTS: Final = Statement(lambda: Comment.objects.select_related("person").filter(plan=_PK))
_EVENTS: Final = Statement(lambda: Event.objects.filter(intent_id=_INTENT)[:EVENTS_SHOWN])
_WAITING: Final = Statement(
    lambda: Replan.objects.waiting().filter(intent=_INTENT), spelled_out=True
)
_REVISIONS: Final = Statement(
    lambda: (
        Plan.objects.with_names()
        .select_related("target", "operation", "agent__owner", "intent", "replan", "made_by")
        .filter(intent=_INTENT)
        .order_by("revision")
    )
)
_DECISIONS: Final = Statement(
    lambda: (
        Decision.objects.select_related("person")
        .filter(plan__intent=_INTENT)
        .order_by("plan", "pk")
    )
)


def _revisions(plan: Plan) -> list[Plan]:
    """Every plan of the intent, with what the comparison of two of them needs."""
    found = _REVISIONS.all(pk=plan.intent_id)
    decisions = _DECISIONS.all(pk=plan.intent_id)
    for revision in found:
        # As prefetch_related leaves them, but from a statement that is composed once.
        own: Any = Decision.objects.all()
        own._result_cache = [d for d in decisions if d.plan_id == revision.pk]
        cast("Any", revision)._prefetched_objects_cache = {"decisions": own}
    return found


def _others(plan: Plan) -> list[Plan]:
    """Open plans of other intents that touch one of this plan's objects (B-8)."""
    if plan.is_terminal:
        return []
    rows = Plan.objects.touching(plan).exclude(intent=plan.intent_id).order_by("decide_by")
    return list(rows.only("plan_id", "title", "status", "decide_by")[: OTHERS_NAMED + 1])


def _reviewers() -> QuerySet[User, Any]:
    """Active people in the target's reviewer groups, each once, with all their groups."""
    reviews = Group.objects.filter(user=OuterRef("pk"), reviewed_targets=_PK)
    people = User.objects.filter(Exists(reviews), is_active=True)
    named = people.annotate(group_names=ArrayAgg("groups__name"))
    rows = named.order_by("username").values_list("pk", "username", "group_names")
    return rows[: REVIEWERS_NAMED + 1]


_REVIEWERS: Final = Lines(_reviewers)
_GROUPS: Final = Lines(
    lambda: Group.objects.filter(reviewed_targets=_PK).order_by("name").values_list("name")
)

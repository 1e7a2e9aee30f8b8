"""The verdict of one person on one plan: B-1 … B-4, B-9, in the order that B-3 fixes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import transaction

from approvals.access import objection
from approvals.ballots import Ballot, faulty, not_as_demanded
from approvals.models import Decision
from approvals.policies.demands import Demands
from approvals.policies.tallies import tally
from audit import actors
from audit.actions import Action
from audit.actors import Actor
from audit.failpoints import failpoint
from audit.recording import record
from audit.writing import insert
from plans import errors
from plans.clock import clock
from plans.errors import Problem
from plans.expiry import expire
from plans.hints import hint
from plans.lifecycle import Verb, transition
from plans.models import Plan
from plans.notes import is_unfit
from plans.retrying import retried
from plans.status import ENGAGED, Status
from plans.timestamps import rfc3339

__all__ = ["Ballot", "decide", "note_refusal", "withdraw"]

WITHDRAWAL: Final = "withdraw"
Verdict = Decision.Verdict
VERB: Final = {Verdict.REJECT: Verb.REJECT, Verdict.REQUEST_CHANGES: Verb.REQUEST_CHANGES}


@retried
def decide(person: User, plan_pk: int, ballot: Ballot) -> Plan:
    """Record the verdict and what follows from it, once; the plan as it stands afterwards.

    The same person's repeat of the same verdict changes nothing. Every refusal leaves an event
    and is raised as a Problem after COMMIT: NotAllowed, UnverifiedPlan, PolicyDenied,
    StepUpRequired 403, AlreadyDecided, Superseded, CommitInFlight, NotDecidable 409, PlanExpired
    410, DigestMismatch 412, DigestMissing 428, NoteRequired, InvalidNote, InvalidField,
    ChangesNotOpened, DecidedTooSoon 422.
    """
    with transaction.atomic():
        plan = Plan.objects.locked(plan_pk)
        now = clock()
        standing = _standing(plan)
        if _repeats(person, ballot, standing):
            return plan
        refusal = _refusal(person, plan, ballot, standing, now)
        if refusal is None:
            decided = _record(person, plan, ballot, now)
            failpoint("decide.inside", plan.pk)
            return decided
        _record_refusal(person, plan, ballot.verdict, refusal)
    if isinstance(refusal, errors.PlanExpired):
        expire(plan_pk)
    raise refusal


def note_refusal(person: User, plan_pk: int, verdict: str, refusal: Problem) -> None:
    """Leave the event of a verdict that its form refused before it came here (L-1, SEC-27)."""
    with transaction.atomic():
        plan = Plan.objects.named(plan_pk)
        _record_refusal(person, plan, verdict, refusal)


def _record_refusal(person: User, plan: Plan, verdict: str, refusal: Problem) -> None:
    """SEC-27: what was tried; words that are no verdict are not repeated."""
    known = verdict if verdict in (*Verdict.values, WITHDRAWAL) else ""
    details = {"verdict": known, "code": refusal.code}
    record(Action.DECISION_REFUSED, actors.person(person), plan.subject(), details)


def _standing(plan: Plan) -> list[Decision]:
    """The decisions of this round, in their order; none are looked for before the first."""
    if plan.status == Status.PENDING and not plan.approvals_given:
        return []
    rows = Decision.objects.select_related("person").filter(plan=plan, round=plan.round)
    return list(rows.order_by("id"))


def _repeats(person: User, ballot: Ballot, standing: list[Decision]) -> bool:
    """B-4: a double click, two tabs, the back button."""
    return any(d.person_id == person.pk and d.verdict == ballot.verdict for d in standing)


def _refusal(
    person: User, plan: Plan, ballot: Ballot, standing: list[Decision], now: datetime
) -> Problem | None:
    """Why this verdict cannot stand; time first, then identity, then the ballot (B-3)."""
    about: dict[str, Any] = {"plan_id": plan.plan_id, "plan_status": plan.status}
    if plan.status == Status.PENDING and plan.decide_by <= now:
        return errors.PlanExpired(plan_id=plan.plan_id, plan_status=Status.EXPIRED)
    if reason := objection(person, plan):
        return errors.NotAllowed(reason, **about)
    if plan.status != Status.PENDING:
        return _not_pending(plan, standing, about)
    if standing and any(d.person_id == person.pk for d in standing):
        return errors.AlreadyDecided(**about, **_told(standing[-1]))
    refusal = faulty(plan, ballot, about)
    if refusal is None and ballot.verdict == Verdict.APPROVE:
        refusal = not_as_demanded(person, plan, ballot, now)
    return refusal


def _not_pending(plan: Plan, standing: list[Decision], about: dict[str, Any]) -> Problem:
    if plan.status == Status.EXPIRED:
        return errors.PlanExpired(**about)
    if plan.status == Status.SUPERSEDED:
        successor = Plan.objects.filter(replaces=plan).first()
        return errors.Superseded(**about, replaced_by=successor.plan_id if successor else None)
    if standing:
        return errors.AlreadyDecided(**about, **_told(standing[-1]))
    if plan.status in ENGAGED:
        return errors.CommitInFlight(**about)
    return errors.NotDecidable(**about)


def _told(decision: Decision) -> dict[str, Any]:
    return {
        "decided_by": decision.person.get_username(),
        "decided_at": rfc3339(decision.decided_at),
        "verdict": decision.verdict,
    }


def _record(person: User, plan: Plan, ballot: Ballot, now: datetime) -> Plan:
    failpoint("decide.before", plan.pk)
    note = ballot.note.strip()
    row = Decision(
        plan=plan,
        round=plan.round,
        person=person,
        verdict=ballot.verdict,
        note=note,
        shown_digest=ballot.shown_digest,
        decided_at=now,
        shown_at=ballot.shown_at,
        stepped_up=ballot.stepped_up,
        opened=ballot.opened,
    )
    insert(row)
    details = {
        "verdict": ballot.verdict,
        "note": note,
        "round": plan.round,
        "shown_digest": ballot.shown_digest,
    }
    record(Action.DECISION_RECORDED, actors.person(person), plan.subject(), details)
    failpoint("decide.recorded", plan.pk)
    return _follow(person, plan, ballot.verdict, note, now)


def _follow(person: User, plan: Plan, verdict: str, note: str, now: datetime) -> Plan:
    """One reject or request-changes closes the plan (B-9); enough approvals make it due at once."""
    actor = actors.person(person)
    if verdict != Verdict.APPROVE:
        verb = VERB[Verdict(verdict)]
        return transition(plan, verb, actor=actor, details={"note": note}, replan_reason=note)
    given = _given(plan)
    if given < plan.approvals_required:
        return _note_given(plan, given)
    return transition(
        plan,
        Verb.APPROVE,
        actor=actor,
        details={"note": note} if note else {},
        approvals_given=given,
        approved_at=now,
        next_attempt_at=now,
    )


def _given(plan: Plan) -> int:
    """How many of the quorum there are with the approval just recorded, which counts."""
    if plan.approvals_required == 1:
        return 1
    return tally(plan, Demands.of(plan), plan.digest).given


def _note_given(plan: Plan, given: int) -> Plan:
    """A plan that waits for more people tells everybody how many there are."""
    Plan.objects.filter(pk=plan.pk).update(approvals_given=given)
    plan.approvals_given = given
    hint()
    return plan


@retried
def withdraw(person: User, plan_pk: int, note: str) -> Plan:
    """An approver takes the approval back before anything may have been sent (B-9).

    Until the quorum is met the plan goes on waiting, and the person may decide again; afterwards
    it is closed. Raises NotAllowed 403, CommitInFlight or NotDecidable 409, PlanExpired 410,
    NoteRequired, InvalidNote 422; each leaves an event.
    """
    with transaction.atomic():
        plan = Plan.objects.locked(plan_pk)
        now = clock()
        mine = _approval_of(person, plan)
        refusal = _no_withdrawal(plan, mine, note, now)
        if refusal is None and mine is not None:
            actor, details = actors.person(person), {"note": note.strip()}
            if plan.status == Status.PENDING:
                return _take_back(plan, mine, actor, details, now)
            return transition(plan, Verb.WITHDRAW, actor=actor, details=details)
        assert refusal is not None
        _record_refusal(person, plan, WITHDRAWAL, refusal)
    raise refusal


def _take_back(
    plan: Plan, mine: Decision, actor: Actor, details: dict[str, Any], now: datetime
) -> Plan:
    """The row stays as history; it counts no more, and another of this person may follow it."""
    Decision.objects.filter(pk=mine.pk).update(withdrawn_at=now)
    record(Action.DECISION_WITHDRAWN, actor, plan.subject(), {**details, "round": plan.round})
    return _note_given(plan, tally(plan, Demands.of(plan), plan.digest).given)


def _approval_of(person: User, plan: Plan) -> Decision | None:
    approvals = (d for d in _standing(plan) if d.verdict == Verdict.APPROVE)
    return next((d for d in approvals if d.person_id == person.pk), None)


def _no_withdrawal(plan: Plan, mine: Decision | None, note: str, now: datetime) -> Problem | None:
    about: dict[str, Any] = {"plan_id": plan.plan_id, "plan_status": plan.status}
    if mine is None:
        return errors.NotAllowed("Only who approved a plan can withdraw it.", **about)
    if not note.strip():
        return errors.NoteRequired(pointer="/note", **about)
    if is_unfit(note):
        return errors.InvalidNote(pointer="/note", **about)
    if plan.may_have_been_sent():
        return errors.CommitInFlight(**about)
    if plan.status == Status.PENDING and plan.decide_by <= now:
        return errors.PlanExpired(**about)
    if plan.status not in (Status.PENDING, Status.APPROVED, Status.COMMITTING):
        return errors.NotDecidable(**about)
    return None

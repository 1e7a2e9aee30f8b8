"""What a person sends to decide, and what is wrong with it (B-1, B-7, B-11)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from approvals.models import Decision
from approvals.oversight import denied_words
from approvals.policies.demands import Demands
from approvals.policies.tallies import tally
from plans import errors
from plans.models import Plan
from plans.notes import is_unfit
from plans.problem import Problem

Verdict = Decision.Verdict


@dataclass(frozen=True, slots=True)
class Ballot:
    """What the person sent: the verdict, a note, and the digest of what was on the screen.

    `shown_at` is what the page signed about itself; `stepped_up`: the session says that the person
    signed in a moment ago; `opened`: every change was opened on the page. Only policies ask for
    them (B-11, SEC-22, SEC-23).
    """

    verdict: str
    note: str
    shown_digest: str
    shown_at: datetime | None = None
    stepped_up: bool = False
    opened: bool = False


def faulty(plan: Plan, ballot: Ballot, about: dict[str, Any]) -> Problem | None:
    """What is wrong with the ballot itself."""
    if ballot.verdict not in Verdict.values:
        return errors.InvalidField(_("There is no such verdict."), pointer="/verdict", **about)
    if is_unfit(ballot.note):
        return errors.InvalidNote(pointer="/note", **about)
    if ballot.verdict != Verdict.APPROVE and not ballot.note.strip():
        return errors.NoteRequired(pointer="/note", **about)
    if not ballot.shown_digest:
        return errors.DigestMissing(**about)
    if ballot.shown_digest != plan.digest:
        return errors.DigestMismatch(**about)
    return None


def not_as_demanded(person: User, plan: Plan, ballot: Ballot, now: datetime) -> Problem | None:
    """What the policies that were shown ask of an approval, and this one does not give (B-7)."""
    about: dict[str, Any] = {"plan_id": plan.plan_id, "plan_status": plan.status}
    demands = Demands.of(plan)
    if not plan.verified and not plan.target.allow_unverified:
        return errors.UnverifiedPlan(**about)
    if demands.denied_by:
        return errors.PolicyDenied(denied_words(demands.denied_by[0]), **about)
    # Where anybody's single approval is asked for, and there is none, this one counts.
    if (demands.groups or plan.approvals_given) and (reason := _not_counted(person, plan, demands)):
        return errors.NotAllowed(reason, **about)
    if demands.note and not ballot.note.strip():
        words = _("Say why: a policy asks for a note with every approval of this plan.")
        return errors.NoteRequired(words, pointer="/note", **about)
    if demands.step_up and not ballot.stepped_up:
        return errors.StepUpRequired(**about)
    if demands.expand_first and not ballot.opened:
        return errors.ChangesNotOpened(pointer="/opened", **about)
    left = demands.dwell_seconds - _looked(ballot, now).total_seconds()
    if left > 0:
        words = _("A policy asks for a longer look: {left} s more.").format(left=ceil(left))
        return errors.DecidedTooSoon(words, pointer="/shown_at", **about)
    return None


def _not_counted(person: User, plan: Plan, demands: Demands) -> str:
    given = tally(plan, demands, plan.digest)
    groups = frozenset(person.groups.values_list("name", flat=True))
    return "" if given.would_count(groups) else given.not_needed()


def _looked(ballot: Ballot, now: datetime) -> timedelta:
    """How long the page was on the screen; without its signed word, not at all (B-11)."""
    return now - ballot.shown_at if ballot.shown_at else timedelta()

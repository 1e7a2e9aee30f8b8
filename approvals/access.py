"""Who may see and who may decide. Closed by default: no group, no plan (B-9, SEC-4)."""

from __future__ import annotations

from enum import StrEnum

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db import models
from django.db.models import Q

from plans.models import Intent, Plan
from plans.models.plans import PlanQuerySet

type Visitor = User | AbstractBaseUser | AnonymousUser


class Role(StrEnum):
    """The groups that the product knows; a target may name others as its reviewers."""

    REVIEWERS = "reviewers"
    LEADS = "leads"
    MANAGERS = "managers"
    OPERATORS = "operators"


def in_group(user: Visitor, *names: str) -> bool:
    """Whether an active, signed-in person belongs to one of these groups."""
    if not isinstance(user, User) or not user.is_active:
        return False
    return user.groups.filter(name__in=names).exists()


def may_stop(user: Visitor) -> bool:
    """Whether this person may hold every send, and be one of two who release it (SEC-30)."""
    return in_group(user, Role.LEADS, Role.OPERATORS)


def visible_plans(user: Visitor) -> PlanQuerySet:
    """Plans of targets whose reviewer groups hold this person; a manager reads every plan."""
    if not isinstance(user, User) or not user.is_active:
        return Plan.objects.none()
    if in_group(user, Role.MANAGERS):
        return Plan.objects.all()
    return reviewable_plans(user)


def sees(user: Visitor, plan: Plan) -> bool:
    """Whether this one plan is among the person's `visible_plans`, in one cheap query."""
    if not isinstance(user, User) or not user.is_active:
        return False
    entitled = Q(name=Role.MANAGERS) | Q(reviewed_targets=plan.target_id)
    return user.groups.filter(entitled).exists()


def reviewable_plans(user: Visitor) -> PlanQuerySet:
    """Plans of the targets this person reviews."""
    if not isinstance(user, User) or not user.is_active:
        return Plan.objects.none()
    return Plan.objects.filter(
        target__in=user.groups.values("reviewed_targets").filter(reviewed_targets__isnull=False)
    )


def reviewable_intents(user: Visitor) -> models.QuerySet[Intent]:
    """Intents of the targets this person reviews (parked ones wait in Needs me)."""
    if not isinstance(user, User) or not user.is_active:
        return Intent.objects.none()
    return Intent.objects.filter(
        target__in=user.groups.values("reviewed_targets").filter(reviewed_targets__isnull=False)
    )


def visible_intents(user: Visitor) -> models.QuerySet[Intent]:
    """Intents whose plans this person may see; a manager reads every one."""
    if in_group(user, Role.MANAGERS):
        return Intent.objects.all()
    return reviewable_intents(user)


def objection(user: Visitor, plan: Plan | Intent) -> str | None:
    """Why this person cannot decide on this plan or intent, in words; None: they can.

    Read afresh inside the decision's transaction (SEC-6): never from a cached session.
    """
    if not isinstance(user, User) or not user.is_active:
        return "You are not signed in."
    if plan.agent.owner_id == user.pk:
        return f"You own {plan.agent.name}; its owner does not decide on its plans."
    if not user.groups.filter(reviewed_targets=plan.target_id).exists():
        return f"You are not in a group that reviews {plan.target.name}."
    return None

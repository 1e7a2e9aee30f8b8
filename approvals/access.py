"""Who may see and who may decide. Closed by default: no group, no plan (B-9, SEC-4)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, cast

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, User
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from audit.statements import Slot, Statement
from plans.models import Agent, Intent, Plan
from plans.models.plans import PlanQuerySet

type Visitor = User | AbstractBaseUser | AnonymousUser


class Role(StrEnum):
    """The groups that the product knows; a target may name others as its reviewers."""

    REVIEWERS = "reviewers"
    LEADS = "leads"
    MANAGERS = "managers"
    OPERATORS = "operators"


_PERSON: Final = Slot("person", models.BigIntegerField())
_TARGET: Final = Slot("target", models.BigIntegerField())
_VISIBLE: Final = Statement(
    lambda: Plan.objects.with_names().filter(
        Exists(
            Group.objects.filter(
                Q(name=Role.MANAGERS) | Q(reviewed_targets=OuterRef("target")), user=_PERSON
            )
        ),
        target__name=Slot("target", models.TextField()),
        plan_id=Slot("plan_id", models.TextField()),
    )
)
_AS_OF_NOW: Final = Statement(
    lambda: (
        User.objects.filter(pk=_PERSON, is_active=True)
        .only("pk")
        .annotate(
            reviews=Exists(Group.objects.filter(user=OuterRef("pk"), reviewed_targets=_TARGET))
        )
    )
)


def in_group(user: Visitor, *names: str) -> bool:
    """Whether an active, signed-in person belongs to one of these groups."""
    if not isinstance(user, User) or not user.is_active:
        return False
    return user.groups.filter(name__in=names).exists()


def may_stop(user: Visitor) -> bool:
    """Whether this person may hold every send, and be one of two who release it (SEC-30)."""
    return in_group(user, Role.LEADS, Role.OPERATORS)


def visible_plans(user: Visitor | Slot) -> PlanQuerySet:
    """Plans of targets whose reviewer groups hold this person; a manager reads every plan."""
    return Plan.objects.filter(_sees(user)) if _is_somebody(user) else Plan.objects.none()


def visible_plan(user: Visitor, target: str, plan_id: str) -> Plan | None:
    """One of the person's `visible_plans` with its names, in one cheap query."""
    if not isinstance(user, User) or not user.is_active:
        return None
    return _VISIBLE.first(person=user.pk, target=target, plan_id=plan_id)


def reviewable_plans(user: Visitor | Slot) -> PlanQuerySet:
    """Plans of the targets this person reviews; a Slot stands for a person who is signed in."""
    if not _is_somebody(user):
        return Plan.objects.none()
    return Plan.objects.filter(target__in=reviewed_by(user))


def reviewable_intents(user: Visitor | Slot) -> models.QuerySet[Intent]:
    """Intents of the targets this person reviews (parked ones wait in Needs me)."""
    if not _is_somebody(user):
        return Intent.objects.none()
    return Intent.objects.filter(target__in=reviewed_by(user))


def _is_somebody(user: Visitor | Slot) -> bool:
    """A person who is signed in, or a Slot for one."""
    return isinstance(user, Slot) or (isinstance(user, User) and user.is_active)


def _sees(user: Visitor | Slot) -> Q:
    managers = Group.objects.filter(name=Role.MANAGERS, user=cast("User", user))
    return Q(Exists(managers)) | Q(target__in=reviewed_by(user))


def reviewed_by(user: Visitor | Slot) -> models.QuerySet[Group, Any]:
    """The keys of the targets that this person's groups review."""
    groups = Group.objects.filter(user=cast("User", user), reviewed_targets__isnull=False)
    return groups.values("reviewed_targets")


def visible_intents(user: Visitor | Slot) -> models.QuerySet[Intent]:
    """Intents whose plans this person may see; a manager reads every one."""
    return Intent.objects.filter(_sees(user)) if _is_somebody(user) else Intent.objects.none()


def managed_agents(user: Visitor) -> models.QuerySet[Agent]:
    """Agents whose webhooks this person sets: their owner's own; all for operators (SEC-16)."""
    if not isinstance(user, User) or not user.is_active:
        return Agent.objects.none()
    if in_group(user, Role.OPERATORS):
        return Agent.objects.all()
    return Agent.objects.filter(owner=user)


def objection(user: Visitor, plan: Plan | Intent) -> str | None:
    """Why this person cannot decide on this plan or intent, in words; None: they can.

    Read afresh inside the decision's transaction (SEC-6): the session's person may have been
    switched off, or moved to other groups, since it was read.
    """
    person: Any = user.pk and _AS_OF_NOW.first(person=user.pk, target=plan.target_id)
    if not person:
        return _("You are not signed in.")
    if plan.agent.owner_id == user.pk:
        return _("You own {agent}; its owner does not decide on its plans.").format(
            agent=plan.agent.name
        )
    if not person.reviews:
        return _("You are not in a group that reviews {target}.").format(target=plan.target.name)
    return None

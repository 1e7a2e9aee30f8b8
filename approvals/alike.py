"""Plans that do the same to other objects stand in one row of Needs me, each decided by itself.

The row shows the one whose time ends first; deciding on it brings the next of them up.
"""

from __future__ import annotations

from typing import Final

from django.db.models import Case, Count, Exists, IntegerField, OuterRef, Q, Subquery, Value, When
from django.db.models.fields import TextField

from audit.statements import Slot
from plans.models.plans import PlanQuerySet

_LIKENESS: Final = Slot("likeness", TextField())
_GIVEN: Final = Slot("given", IntegerField())


def folded(plans: PlanQuerySet, same: PlanQuerySet) -> PlanQuerySet:
    """The first plan of those that are alike, with their number as `alike`.

    `same` is the same stretch of the list again, made anew.
    """
    twins = same.exclude(likeness="").filter(
        likeness=OuterRef("likeness"), approvals_given=OuterRef("approvals_given")
    )
    sooner = Q(decide_by__lt=OuterRef("decide_by"))
    tie = Q(decide_by=OuterRef("decide_by"), pk__lt=OuterRef("pk"))
    earlier = twins.filter(Q(decide_by__lte=OuterRef("decide_by")), sooner | tie)
    number = twins.order_by().values("likeness").annotate(number=Count("pk")).values("number")
    own = When(likeness="", then=Value(1))
    return plans.filter(Q(likeness="") | ~Exists(earlier)).annotate(
        alike=Case(own, default=Subquery(number), output_field=IntegerField())
    )


def like(plans: PlanQuerySet) -> PlanQuerySet:
    """Those of them that stand in the row of this likeness."""
    return plans.exclude(likeness="").filter(likeness=_LIKENESS, approvals_given=_GIVEN)

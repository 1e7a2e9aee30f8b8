"""The landing page: what waits, the first plan beside it, and what became of my decisions."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from approvals import desk, floods, lists, queue, rows, warnings
from approvals.context import navigation_of
from approvals.filters import Filters, Tab
from approvals.models import Decision
from approvals.narrowing import Narrowing
from approvals.views import PersonRequest, signed_in
from approvals.views.plan import plan_context
from plans.models import Operation, Plan


@signed_in
@require_GET
def review(request: PersonRequest) -> HttpResponse:
    """The list alone for htmx; with the first plan of the list beside it for a full page."""
    filters = Filters.from_query(request.GET)
    context = _list(request, filters)
    if request.htmx and not request.htmx.history_restore_request:
        return render(request, "approvals/review.html#queue", context | {"fragment": True})
    context |= {"tray": queue.tray(request.user), **desk.choices(request.user)}
    context["risks"] = Operation.Risk.values
    context |= _first(request, context["found"])
    return render(request, "approvals/review.html", context)


def _list(request: PersonRequest, filters: Filters) -> dict[str, Any]:
    narrowing = Narrowing.by(filters)
    page = lists.page(request.user, filters, narrowing=narrowing)
    numbers = desk.desk(request.user, narrowing)
    shown = rows.rows(page, filters.tab, request.user)
    return {
        "filters": filters,
        "found": page,
        "rows": shown,
        "warning": warnings.words(row.stage for row in shown),
        "tabs": [(tab, numbers.tabs.get(tab)) for tab in Tab],
        "deciding": numbers.head.review,
        "may_review": numbers.may_review,
        "floods": floods.floods(request.user) if filters.tab is Tab.NEEDS_ME else [],
        "navigation": navigation_of(request, numbers.head),
    }


def _first(request: PersonRequest, page: lists.Page) -> dict[str, Any]:
    """The plan on the right: the top of the list, read whole."""
    if not page.plans:
        return {}
    plan = Plan.objects.named(page.plans[0].plan.pk)
    return plan_context(request, plan) | {"opened": f"plan-{plan.pk}"}


@signed_in
@require_GET
def decisions(request: PersonRequest) -> HttpResponse:
    """The strip: the progress of my decisions. It asks for itself while one is moving."""
    return render(request, "includes/tray.html", {"tray": queue.tray(request.user)})


@signed_in
@require_POST
def dismissal(request: PersonRequest, pk: int) -> HttpResponse:
    """Put one line of the strip away; it is my own, and the decision itself stays as it is."""
    decision = get_object_or_404(Decision, pk=pk, person=request.user)
    Decision.objects.filter(pk=decision.pk).update(dismissed=True)
    if request.htmx:
        return render(request, "includes/tray.html", {"tray": queue.tray(request.user)})
    return redirect("review")

"""Plans whose outcome nobody could find out: a person looks at the target and says (T-10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from approvals import queue
from approvals.access import objection, visible_plans
from approvals.unresolved import READINGS, Look, page, settled
from approvals.views import PersonRequest, signed_in
from audit import actors
from plans import resolving
from plans.errors import InvalidField, NotAllowed, NotUnresolved
from plans.models import Plan
from plans.problem import Problem
from plans.replies import wants_problem
from plans.status import Status

FINDINGS: Final = {"applied": True, "not_applied": False}


@signed_in
@require_GET
def unresolved(request: PersonRequest) -> HttpResponse:
    """Longest first; `?after=` goes on where a page ended, `?plan=` shows one plan alone."""
    return _page(request)


@signed_in
@require_POST
def finding(request: PersonRequest, target: str, plan_id: str) -> HttpResponse:
    """`finding` is `applied` or `not_applied`; a note says how the person knows.

    422 and 409 are this page again, with what was typed and what is true now.
    """
    plan = _plan_to_decide(request, target, plan_id)
    note, actor = request.POST.get("note", ""), actors.person(request.user)
    try:
        applied = _said(request)
        plan = resolving.checked(plan.pk, applied=applied, note=note, actor=actor)
    except Problem as problem:
        return _refused(request, plan, problem)
    text = _("{plan_id} is {status} now.")
    told = text.format(plan_id=plan.plan_id, status=plan.get_status_display())
    messages.success(request, told)
    # A plan that was shown alone has left the page.
    return _back(replace(Look.from_query(request.GET), plan_id=""))


@signed_in
@require_POST
def reading(request: PersonRequest, target: str, plan_id: str) -> HttpResponse:
    """Ask the target now; its answer is shown and moves nothing by itself."""
    plan = _plan_to_decide(request, target, plan_id)
    if plan.status != Status.UNRESOLVED:
        problem = NotUnresolved(plan_id=plan.plan_id, plan_status=plan.status)
        return _refused(request, plan, problem)
    answer = resolving.read_now(plan.pk)
    if not request.htmx:
        _tell(request, plan, "" if answer is None else answer.kind)
    return _back(Look.from_query(request.GET), f"#unresolved-{plan.pk}")


def _said(request: PersonRequest) -> bool:
    word = request.POST.get("finding", "")
    if word not in FINDINGS:
        raise InvalidField(_("Say whether it was applied or not."), pointer="/finding")
    return FINDINGS[word]


def _tell(request: PersonRequest, plan: Plan, kind: str) -> None:
    name = plan.target.name
    if not kind:
        messages.warning(request, _("{name} offers no way to read a plan back.").format(name=name))
    else:
        messages.info(request, f"{name} {READINGS[kind][1]} ({plan.plan_id}).")


def _back(look: Look, anchor: str = "") -> HttpResponse:
    """303, so that the browser's back and reload never post again."""
    response = redirect(f"{reverse('unresolved')}{look.query}{anchor}")
    response.status_code = 303
    return response


def _refused(request: PersonRequest, plan: Plan, problem: Problem) -> HttpResponse:
    """The page again: the fault beside the field, or who was first; nothing typed is lost."""
    if wants_problem(request):
        raise problem
    context: dict[str, Any] = {"note": request.POST.get("note", "")}
    if isinstance(problem, NotUnresolved):
        context["settled"] = settled(plan.pk)
    else:
        context |= {"faulty": plan.pk, "fault": problem.detail}
    return _page(request, problem.status, context)


def _page(
    request: PersonRequest, status: int = 200, more: dict[str, Any] | None = None
) -> HttpResponse:
    look = Look.from_query(request.GET)
    found = page(request.user, look)
    context = {"look": look, "page": found, **(more or {})}
    if not found.cases:
        context["may_review"] = queue.seen_targets(request.user).exists()
    return render(request, "approvals/unresolved.html", context, status=status)


def _plan_to_decide(request: PersonRequest, target: str, plan_id: str) -> Plan:
    """404 for what this person cannot see, 403 for what they cannot decide (SEC-9)."""
    seen = visible_plans(request.user).with_names()
    plan = get_object_or_404(seen, target__name=target, plan_id=plan_id)
    if reason := objection(request.user, plan):
        raise NotAllowed(reason)
    return plan

"""Plans whose outcome nobody could find out: a person looks at the target and says (T-10)."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from approvals import queue
from approvals.access import objection, visible_plans
from approvals.views import PersonRequest, signed_in
from audit import actors
from plans import resolving
from plans.errors import InvalidField, NotAllowed, NotUnresolved
from plans.models import Plan
from plans.status import Status

FINDINGS = {"applied": True, "not_applied": False}


@signed_in
@require_GET
def unresolved(request: PersonRequest) -> HttpResponse:
    plans = queue.unresolved(request.user).with_names().prefetch_related("attempts")
    context = {
        "plans": plans[: queue.PAGE],
        "mine": queue.reviewed_targets(request.user),
        "may_review": queue.seen_targets(request.user).exists(),
    }
    return render(request, "approvals/unresolved.html", context)


@signed_in
@require_POST
def finding(request: PersonRequest, target: str, plan_id: str) -> HttpResponse:
    """`finding` is `applied` or `not_applied`; a note says how the person knows."""
    plan = _plan_to_decide(request, target, plan_id)
    word = request.POST.get("finding", "")
    if word not in FINDINGS:
        raise InvalidField("Say whether it was applied or not.", pointer="/finding")
    note, actor = request.POST.get("note", ""), actors.person(request.user)
    plan = resolving.checked(plan.pk, applied=FINDINGS[word], note=note, actor=actor)
    messages.success(request, f"{plan.plan_id} is {plan.get_status_display()} now.")
    return redirect("unresolved")


@signed_in
@require_POST
def reading(request: PersonRequest, target: str, plan_id: str) -> HttpResponse:
    """Ask the target now; its answer is shown and moves nothing by itself."""
    plan = _plan_to_decide(request, target, plan_id)
    if plan.status != Status.UNRESOLVED:
        raise NotUnresolved(plan_id=plan.plan_id, plan_status=plan.status)
    answer = resolving.read_now(plan.pk)
    if answer is None:
        messages.warning(request, f"{plan.target.name} offers no way to read a plan back.")
    else:
        messages.info(request, f"{plan.target.name} says now: {answer.kind.value}.")
    return redirect("unresolved")


def _plan_to_decide(request: PersonRequest, target: str, plan_id: str) -> Plan:
    """404 for what this person cannot see, 403 for what they cannot decide (SEC-9)."""
    seen = visible_plans(request.user).with_names()
    plan = get_object_or_404(seen, target__name=target, plan_id=plan_id)
    if reason := objection(request.user, plan):
        raise NotAllowed(reason)
    return plan

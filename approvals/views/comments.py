"""POST to a plan's comments; the answer to htmx is that part of the page alone."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from approvals import comments, forms, rows
from approvals.views import PersonRequest, signed_in
from approvals.views.plan import is_fragment, plan_context, plan_page, seen_plan
from plans.models import Plan
from plans.problem import Problem
from plans.replies import problem_reply, wants_problem


@signed_in
@require_POST
def comment(request: PersonRequest, target: str, plan_id: str) -> HttpResponse:
    """Say something to everybody who may see the plan; 422 is the page with what was typed.

    Without JavaScript the note of a decision comes along with it, and stays in its place.
    """
    plan = seen_plan(request.user, target, plan_id)
    try:
        comments.add(request.user, plan.pk, forms.comment(request.POST, plan))
    except Problem as problem:
        if wants_problem(request):
            return problem_reply(request, problem)
        return _page(request, plan, problem)
    if is_fragment(request) or request.POST.get("note", "").strip():
        return _page(request, plan)
    answer = redirect(f"{rows.url_of(plan)}#conversation")
    answer.status_code = 303
    return answer


def _page(request: PersonRequest, plan: Plan, problem: Problem | None = None) -> HttpResponse:
    status = problem.status if problem else 200
    context = plan_context(request, plan) | {"comment_problem": problem, "posted": request.POST}
    if is_fragment(request):
        return render(request, "approvals/plan_parts/comments.html", context, status=status)
    return plan_page(request, context, status=status)

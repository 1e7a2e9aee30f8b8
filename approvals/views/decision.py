"""POST to a decision or a withdrawal; every refusal says what is true now (B-1 … B-4)."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST
from django_htmx.http import (
    HttpResponseClientRedirect,
    push_url,
    trigger_client_event,
)

from approvals import comments, decisions, forms, oversight, queue, rows
from approvals.access import objection
from approvals.models import Decision
from approvals.views import PersonRequest, signed_in, stepping_up
from approvals.views.plan import is_fragment, plan_context, plan_page, seen_plan
from audit.failpoints import failpoint
from plans import tasks
from plans.errors import StepUpRequired
from plans.models import Plan
from plans.problem import Problem
from plans.replies import problem_reply, wants_problem
from plans.status import Status

# "Look again": the page itself is the answer, with what was typed and what has changed.
LOOK_AGAIN = frozenset({412, 422, 428})


@signed_in
@require_POST
def decision(request: PersonRequest, target: str, plan_id: str) -> HttpResponse:
    """Decide, then show the next plan. 403, 409, 410, 412, 422 and 428 are pages, too."""
    plan = oversight.current(seen_plan(request.user, target, plan_id))
    repeated = _has_decided(request, plan)
    try:
        ballot = forms.ballot(request.POST, plan, stepped_up=stepping_up.recently(request))
        _check_confirmation(request, plan)
        comments.add_typed(request.user, plan.pk, request.POST.get("comment", ""))
    except Problem as problem:
        decisions.note_refusal(request.user, plan.pk, request.POST.get("verdict", ""), problem)
        return _refused(request, plan, problem)
    try:
        decided = decisions.decide(request.user, plan.pk, ballot)
        failpoint("decide.after", plan.pk)
        tasks.ring_for(decided)
    except StepUpRequired as problem:
        if wants_problem(request):
            return problem_reply(request, problem)
        return _go(request, stepping_up.address(rows.url_of(plan)))
    except Problem as problem:
        return _refused(request, plan, problem)
    if repeated:
        return _go(request, rows.url_of(plan))
    return _next(request)


@signed_in
@require_POST
def withdrawal(request: PersonRequest, target: str, plan_id: str) -> HttpResponse:
    """Take an approval back while nothing may have been sent (B-9)."""
    plan = seen_plan(request.user, target, plan_id)
    try:
        decisions.withdraw(request.user, plan.pk, forms.withdrawal_note(request.POST, plan))
    except Problem as problem:
        return _refused(request, plan, problem)
    return _go(request, rows.url_of(plan))


def _check_confirmation(request: PersonRequest, plan: Plan) -> None:
    """Only who could decide now is asked to type a value; the others hear why they cannot."""
    asked = plan.status == Status.PENDING and forms.confirmation(plan, plan.risk)
    if asked and objection(request.user, plan) is None:
        forms.check_confirmation(request.POST, plan)


def _has_decided(request: PersonRequest, plan: Plan) -> bool:
    """A plan that waits for its first approval has no decisions to look for."""
    if plan.status == Status.PENDING and not plan.approvals_given:
        return False
    return Decision.objects.filter(plan=plan, round=plan.round, person=request.user).exists()


def _next(request: PersonRequest) -> HttpResponse:
    """The top of my queue, since a decision recomputes everything; an empty queue says so."""
    following = queue.top(request.user)
    if following is None:
        return _go(request, "review")
    if not is_fragment(request):
        return _go(request, rows.url_of(following))
    context = plan_context(request, Plan.objects.named(following.pk)) | {"fragment": True}
    response = render(request, "approvals/plan.html#detail", context)
    return trigger_client_event(push_url(response, rows.url_of(following)), "decided")


def _go(request: PersonRequest, to: str) -> HttpResponse:
    """303, so that the browser's back and reload never post again."""
    response = redirect(to)
    response.status_code = 303
    return HttpResponseClientRedirect(response.url) if is_fragment(request) else response


def _refused(request: PersonRequest, plan: Plan, problem: Problem) -> HttpResponse:
    if wants_problem(request):
        return problem_reply(request, problem)
    now = seen_plan(request.user, plan.target.name, plan.plan_id)
    context = plan_context(request, now)
    changed = _changed(request, now)
    context |= {"problem": problem, "posted": request.POST, "changed": changed}
    context["changed_words"] = [forms.PARTS[name] for name in changed]
    context["won_at"] = _won_at(problem)
    context["opened_before"] = set() if changed else forms.opened_changes(request.POST)
    look_again = problem.status in LOOK_AGAIN and context["may"].may_decide
    template = "approvals/plan.html" if look_again else "approvals/decision_refused.html"
    if is_fragment(request):
        context["fragment"] = True
        response = render(request, f"{template}#detail", context, status=problem.status)
    elif look_again:
        response = plan_page(request, context, status=problem.status)
    else:
        response = render(request, template, context, status=problem.status)
    for name, value in problem.headers.items():
        response.headers[name] = value
    return response


def _won_at(problem: Problem) -> datetime | None:
    """When the winner of a race decided."""
    told = problem.members.get("decided_at")
    return datetime.fromisoformat(told) if told else None


def _changed(request: PersonRequest, plan: Plan) -> list[str]:
    """Which parts of the page are not as the form was made from (B-2)."""
    shown = oversight.ReviewOversight().assess(plan)
    return forms.changed_since(request.POST.get("shown_at", ""), plan, shown)

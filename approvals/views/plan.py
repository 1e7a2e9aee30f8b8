"""One plan: the page that a decision is made on (4-screens, "A plan")."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django_htmx.http import reswap

from approvals import forms, papers, queue, rows
from approvals.access import Visitor, visible_plan
from approvals.conversation import Look, opened
from approvals.dossier import Dossier
from approvals.options import Options
from approvals.views import PersonRequest, signed_in, stepping_up
from plans.models import Plan

# What a page says about itself when it asks whether it is still true.
STATE = "Plan-State"
# And since when that has been on the screen: the signed field of its form (B-11).
LOOK = "Shown-At"
# What it is told then: its countdown may be that of a machine which slept.
LEFT = "Decide-In-Ms"


@signed_in
@require_safe
def plan(request: PersonRequest, target: str, plan_id: str) -> HttpResponse:
    """A page by itself; for htmx what stands beside the list, or 204 while nothing has changed."""
    context = plan_context(request, seen_plan(request.user, target, plan_id))
    if request.headers.get(STATE) == context["page"].state:
        answer = _what_is_said(request, context)
        answer.headers[LEFT] = str(context["papers"].decide_in_ms)
        return answer
    if is_fragment(request):
        return render(request, "approvals/plan.html#detail", context | {"fragment": True})
    return plan_page(request, context)


def _what_is_said(request: PersonRequest, context: dict[str, Any]) -> HttpResponse:
    """The plan has not moved: at most there are new comments or evidence beside it."""
    look, now = Look.read(request.GET.get("talk", "")), context["page"].talk.look
    if look is None or (look.comments, look.evidence) == (now.comments, now.evidence):
        return HttpResponse(status=204)
    return reswap(render(request, "approvals/plan_parts/talk.html", context), "none")


def plan_context(request: HttpRequest, plan: Plan) -> dict[str, Any]:
    """What `approvals/plan.html` needs: `plan`, `papers` (rows), `page` (texts), `may` (options).

    `plan` was read by `with_names()`. A fixed number of queries, whatever the plan holds.
    """
    found = papers.read(plan, request.user)  # type: ignore[arg-type]  # views are signed_in
    page = Dossier(found, opened(request.GET, request.POST, found.now))
    context = {"plan": plan, "papers": found, "page": page, "may": Options(found)}
    if found.demands.step_up and not stepping_up.recently(request):
        context["confirm_first"] = stepping_up.address(rows.url_of(plan))
    return context | _look(request, page)


def _look(request: HttpRequest, page: Dossier) -> dict[str, Any]:
    """A look that was begun goes on as long as the page shows the very same (B-11).

    `shown_at`: the form's signed field; `dwell_left_ms`: what a policy asks for beyond it.
    """
    found = page.papers
    begun = request.POST.get("shown_at") or request.headers.get(LOOK, "")
    since = forms.shown_since(begun, found.plan, found.assessment)
    left = timedelta(seconds=found.demands.dwell_seconds) - (found.now - (since or found.now))
    return {
        "shown_at": begun if since else page.shown_at,
        "dwell_left_ms": max(0, round(left / timedelta(milliseconds=1))),
    }


def plan_page(request: PersonRequest, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """The full page: the plan, with the strip of this person's decisions above it."""
    context |= {"tray": queue.tray(request.user)}
    return render(request, "approvals/plan.html", context, status=status)


def seen_plan(user: Visitor, target: str, plan_id: str) -> Plan:
    """404 for what this person may not see: not yours is not there (SEC-4)."""
    plan = visible_plan(user, target, plan_id)
    if plan is None:
        raise Http404
    return plan


def is_fragment(request: PersonRequest) -> bool:
    return bool(request.htmx) and not request.htmx.history_restore_request

"""What is being planned again: why, since when, and who has to act (R-1 … R-3)."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from approvals import queue, rows
from approvals.access import objection, visible_intents
from approvals.views import PersonRequest, signed_in
from audit import actors
from plans import intents, tasks
from plans.errors import NotAllowed
from plans.models import Intent, Plan


@signed_in
@require_GET
def replans(request: PersonRequest) -> HttpResponse:
    """Oldest first, parked ones included; `?after=` is the last row's number."""
    found, following = queue.waiting_replans(request.user, after=request.GET.get("after", ""))
    context = {
        "replans": [(replan, rows.subject_of(replan), rows.why(replan)) for replan in found],
        "next": following,
        "mine": queue.reviewed_targets(request.user),
        "may_review": queue.seen_targets(request.user).exists(),
    }
    return render(request, "approvals/replans.html", context)


@signed_in
@require_POST
def plan_again(request: PersonRequest, intent_id: uuid.UUID) -> HttpResponse:
    """Get a fresh plan now. `opened`, from a page that asks by itself (R-3, R-4): 204."""
    intent = _intent_to_decide(request, intent_id)
    opened = "opened" in request.POST
    ask = intents.freshen if opened else intents.plan_again
    replan = ask(intent, actor=actors.person(request.user))
    if replan is not None:
        tasks.ring(tasks.run_replan, replan.pk)
    if opened:
        return HttpResponse(status=204)
    messages.success(request, _("It is being planned again. The fresh plan comes into the queue."))
    latest = Plan.objects.filter(intent=intent).select_related("target").order_by("-revision")
    plan = latest.first()
    return redirect(rows.url_of(plan) if plan else "replans")


@signed_in
@require_POST
def give_up(request: PersonRequest, intent_id: uuid.UUID) -> HttpResponse:
    """Abandon the intent, with a note that says why."""
    intent = _intent_to_decide(request, intent_id)
    note = request.POST.get("note", "")
    intents.give_up(intent, actor=actors.person(request.user), note=note)
    messages.success(request, _("Given up: the intent is abandoned, nothing was applied."))
    return redirect("replans")


def _intent_to_decide(request: PersonRequest, intent_id: uuid.UUID) -> Intent:
    """404 for what this person cannot see, 403 for what they cannot decide (SEC-9)."""
    seen = visible_intents(request.user).select_related("target", "agent")
    intent = get_object_or_404(seen, pk=intent_id)
    if reason := objection(request.user, intent):
        raise NotAllowed(reason)
    return intent

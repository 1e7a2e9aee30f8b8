"""What this installation knows: targets and their health, operations, agents and keys."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from approvals.access import Role, in_group
from approvals.views import PersonRequest, signed_in
from audit import actors
from plans import circuits
from plans.clock import clock
from plans.errors import NotAllowed
from plans.models import Agent, Target


@signed_in
@require_GET
def settings(request: PersonRequest) -> HttpResponse:
    """Operators only. Never a secret: a credential is shown as set or missing."""
    _only_operators(request)
    targets = Target.objects.order_by("name").prefetch_related("operations", "reviewers")
    agents = Agent.objects.order_by("name").select_related("owner").prefetch_related("api_keys")
    context = {"targets": targets, "agents": agents, "now": clock()}
    return render(request, "approvals/settings.html", context)


@signed_in
@require_POST
def trial(request: PersonRequest, name: str) -> HttpResponse:
    """Close the circuit of a target's credential: the next approved plan tries it (T-7)."""
    _only_operators(request)
    target = get_object_or_404(Target, name=name)
    if circuits.try_again(target.pk, actor=actors.person(request.user)):
        messages.success(request, f"{target.name}: sending again.")
    else:
        messages.info(request, f"{target.name} was not stopped.")
    return redirect("settings")


def _only_operators(request: PersonRequest) -> None:
    if not in_group(request.user, Role.OPERATORS):
        raise NotAllowed("Settings are the operators' page.")

"""What this installation knows: targets and their health, operations, agents and keys."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from approvals.access import Role, in_group, may_stop
from approvals.notices.rows import tally
from approvals.rules import rules
from approvals.views import PersonRequest, signed_in
from audit import actors
from plans import circuits, contract_runs, emergency, health
from plans.clock import clock
from plans.errors import NotAllowed
from plans.models import Agent, Target, Webhook
from plans.sending import resend_seconds


@signed_in
@require_GET
def settings(request: PersonRequest) -> HttpResponse:
    """The emergency stop for leads and operators; all else for operators alone."""
    operator = in_group(request.user, Role.OPERATORS)
    if not operator and not may_stop(request.user):
        raise NotAllowed(_("Settings are the operators' page."))
    now, stopped = clock(), emergency.current()
    context = {
        "stop": stopped,
        "asked": stopped is not None and emergency.release_waits(stopped, now),
        "mine": stopped is not None and stopped.release_asked_by_id == str(request.user.pk),
        "operator": operator,
        "now": now,
    }
    context |= _what_is_known() if operator else {}
    return render(request, "approvals/settings.html", context)


def _what_is_known() -> dict[str, Any]:
    """Never a secret: a credential is shown as set or missing."""
    rows = Target.objects.order_by("name").prefetch_related("operations", "reviewers")
    targets = list(rows)
    agents = Agent.objects.order_by("name").select_related("owner").prefetch_related("api_keys")
    wellbeing = health.of(target.pk for target in targets)
    runs = contract_runs.latest(wellbeing)
    return {
        "targets": [
            (target, wellbeing[target.pk], resend_seconds(target), runs.get(target.pk))
            for target in targets
        ],
        "agents": agents,
        "rules": rules(),
        "webhooks": Webhook.objects.tally(),
        "notices": tally(),
    }


@signed_in
@require_POST
def trial(request: PersonRequest, name: str) -> HttpResponse:
    """Close the circuit of a target's credential: the next approved plan tries it (T-7)."""
    _only_operators(request)
    target = get_object_or_404(Target, name=name)
    if circuits.try_again(target.pk, actor=actors.person(request.user)):
        messages.success(request, _("{target}: sending again.").format(target=target.name))
    else:
        messages.info(request, _("{target} was not stopped.").format(target=target.name))
    return redirect("settings")


def _only_operators(request: PersonRequest) -> None:
    if not in_group(request.user, Role.OPERATORS):
        raise NotAllowed(_("Settings are the operators' page."))

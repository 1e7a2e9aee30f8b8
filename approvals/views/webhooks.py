"""Webhooks, set by a person: an agent's owner, or an operator for any agent (W-1, SEC-16)."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Count, OuterRef, Prefetch, QuerySet, Subquery
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from approvals.access import Role, in_group, managed_agents
from approvals.views import PersonRequest, signed_in
from audit import actors
from plans import receivers, tasks
from plans.clock import clock
from plans.custody import Secret
from plans.errors import InvalidField, NotAllowed
from plans.models import Agent, Delivery, DeliveryAttempt, Webhook
from plans.problem import Problem
from plans.replies import wants_problem

PAGE = 25
SWITCHES = {"on": receivers.switch_on, "off": receivers.switch_off}


@signed_in
@require_GET
def webhooks(request: PersonRequest) -> HttpResponse:
    """Every webhook of the agents that are this person's to manage, and a form for one more."""
    return _list(request)


@signed_in
@require_POST
def webhook_addition(request: PersonRequest) -> HttpResponse:
    """The answer is the one page that shows the secret. What is wrong is said beside the form."""
    agents = _agents(request)
    try:
        # Compared here: a text that PostgreSQL cannot hold is nobody's name.
        agent = next((one for one in agents if one.name == request.POST.get("agent")), None)
        if agent is None:
            raise InvalidField(_("Choose one of your agents."), pointer="/agent")
        internal = _internal(request)
        actor, url = actors.person(request.user), request.POST.get("url", "").strip()
        made, secret = receivers.add(agent, url, internal=internal, actor=actor)
    except Problem as problem:
        if wants_problem(request):
            raise
        return _list(request, problem)
    return _show_secret(request, made, secret)


@signed_in
@require_GET
def webhook(request: PersonRequest, webhook_id: int) -> HttpResponse:
    """One webhook and its log, the newest first; `before` is where the page before ended."""
    hook = _webhook(request, webhook_id)
    attempts = Prefetch("attempts", DeliveryAttempt.objects.order_by("number"))
    rows = hook.deliveries.select_related("event").prefetch_related(attempts).order_by("-pk")
    before = request.GET.get("before", "")
    if before.isascii() and before.isdecimal() and len(before) < 19:
        rows = rows.filter(pk__lt=int(before))
    found = list(rows[: PAGE + 1])
    context = {
        "webhook": hook,
        "deliveries": found[:PAGE],
        "older": found[PAGE - 1].pk if len(found) > PAGE else None,
        "first": "before" not in request.GET,
        "now": clock(),
    }
    return render(request, "approvals/webhook.html", context)


@signed_in
@require_POST
def webhook_rotation(request: PersonRequest, webhook_id: int) -> HttpResponse:
    """A new secret, shown once. `number` says which one the page was about."""
    hook, number = _webhook(request, webhook_id), request.POST.get("number", "")
    if not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise InvalidField(_("Which secret? The form says it."), pointer="/number")
    secret = receivers.rotate(hook.pk, int(number), actor=actors.person(request.user))
    return _show_secret(request, _webhook(request, webhook_id), secret)


@signed_in
@require_POST
def webhook_switch(request: PersonRequest, webhook_id: int) -> HttpResponse:
    """`to` is `on` or `off`."""
    hook, to = _webhook(request, webhook_id), request.POST.get("to", "")
    if to not in SWITCHES:
        raise InvalidField(_("On or off?"), pointer="/to")
    if SWITCHES[to](hook.pk, actor=actors.person(request.user)):
        messages.success(request, _("The webhook is {to} now.").format(to=_(to)))
    else:
        messages.info(request, _("It was {to} already.").format(to=_(to)))
    return redirect("webhook", hook.pk)


@signed_in
@require_POST
def redelivery(request: PersonRequest, delivery_id: int) -> HttpResponse:
    """Send it again, now; its receiver sees the same webhook-id."""
    mine = Delivery.objects.filter(webhook__agent__in=managed_agents(request.user))
    delivery = get_object_or_404(mine, pk=delivery_id)
    receivers.send_again(delivery.pk, actor=actors.person(request.user))
    tasks.ring(tasks.deliver_webhook, delivery.webhook_id)
    messages.success(
        request, _("{message_id} is being sent again.").format(message_id=delivery.message_id)
    )
    return redirect("webhook", delivery.webhook_id)


def _list(request: PersonRequest, problem: Problem | None = None) -> HttpResponse:
    agents = _agents(request)
    waiting = Delivery.objects.filter(webhook=OuterRef("pk"), status=Delivery.Status.WAITING)
    count = waiting.order_by().values("webhook").annotate(n=Count("pk")).values("n")
    rows = Webhook.objects.filter(agent__in=agents).select_related("agent")
    context: dict[str, Any] = {
        "webhooks": rows.annotate(waiting=Subquery(count)).order_by("agent__name", "pk"),
        "agents": agents.order_by("name").values_list("name", flat=True),
        "operator": in_group(request.user, Role.OPERATORS),
        "problem": problem,
        "posted": request.POST,
    }
    return render(
        request, "approvals/webhooks.html", context, status=problem.status if problem else 200
    )


def _show_secret(request: PersonRequest, hook: Webhook, secret: Secret) -> HttpResponse:
    context = {"webhook": hook, "secret": secret.reveal()}
    answer = render(request, "approvals/webhook_secret.html", context)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _agents(request: PersonRequest) -> QuerySet[Agent]:
    """Of whom this person sets webhooks; 403 for whoever has nothing to set."""
    agents = managed_agents(request.user)
    if not in_group(request.user, Role.OPERATORS) and not agents.exists():
        raise NotAllowed(_("Webhooks are set by an agent's owner, or by an operator."))
    return agents


def _webhook(request: PersonRequest, pk: int) -> Webhook:
    """404 for what is not this person's to manage."""
    mine = Webhook.objects.filter(agent__in=managed_agents(request.user))
    return get_object_or_404(mine.select_related("agent"), pk=pk)


def _internal(request: PersonRequest) -> bool:
    """An owner must not reach into our network by way of this server (SEC-15)."""
    internal = request.POST.get("internal") == "on"
    if internal and not in_group(request.user, Role.OPERATORS):
        raise NotAllowed(_("Only an operator may allow an internal receiver."))
    return internal

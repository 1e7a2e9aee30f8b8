"""The emergency stop's three verbs. A lead or an operator stops; two of them release (SEC-30)."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from approvals.access import may_stop
from approvals.views import PersonRequest, signed_in
from audit import actors
from plans import emergency
from plans.errors import InvalidField, NotAllowed


@signed_in
@require_POST
def stop(request: PersonRequest) -> HttpResponse:
    """Hold every send, or keep it held although somebody asked for the release."""
    _only_who_may_stop(request)
    reason, actor = request.POST.get("reason", ""), actors.person(request.user)
    under_way = emergency.stop(reason, actor=actor)
    text = _("Stopped. Commits on their way already: {number}.")
    messages.warning(request, text.format(number=under_way))
    return redirect("settings")


@signed_in
@require_POST
def release_request(request: PersonRequest) -> HttpResponse:
    """The first of two people."""
    _only_who_may_stop(request)
    reason, actor = request.POST.get("reason", ""), actors.person(request.user)
    if emergency.ask_release(reason, actor=actor):
        messages.info(request, _("Asked. A second person has to confirm it within 15 minutes."))
    else:
        messages.warning(request, _("Somebody has asked already."))
    return redirect("settings")


@signed_in
@require_POST
def release(request: PersonRequest) -> HttpResponse:
    """The second person. `number` says which stop the page showed."""
    _only_who_may_stop(request)
    number = request.POST.get("number", "")
    if not (number.isascii() and number.isdecimal()):
        raise InvalidField(_("Which stop? The form says it."), pointer="/number")
    actor = actors.person(request.user)
    emergency.release(int(number), actor=actor, may_release=_may_still_stop)
    messages.success(request, _("Commits are sent again."))
    return redirect("settings")


def _may_still_stop(person_id: str) -> bool:
    """Read afresh: who asked may have left the group since (SEC-6)."""
    person = User.objects.filter(pk=person_id).first() if person_id.isdecimal() else None
    return person is not None and may_stop(person)


def _only_who_may_stop(request: PersonRequest) -> None:
    if not may_stop(request.user):
        raise NotAllowed(_("The emergency stop belongs to leads and operators."))

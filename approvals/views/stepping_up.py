"""Whether the person signed in a moment ago, and the page to do it again (SEC-22)."""

from __future__ import annotations

import time
from typing import cast
from urllib.parse import urlencode

from allauth.account.authentication import get_authentication_records
from allauth.account.views import ReauthenticateView
from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponseBase
from django.urls import Resolver404, resolve, reverse

from approvals import rows
from approvals.access import visible_plan
from plans.models import Plan


def recently(request: HttpRequest) -> bool:
    """The session's last proof of who this is, a sign-in or a confirmation, is still fresh."""
    records = get_authentication_records(request, request.user)
    last = max((record["at"] for record in records), default=0.0)
    age = time.time() - last
    return bool(0 <= age < settings.ACCOUNT_REAUTHENTICATION_TIMEOUT)


def address(then: str) -> str:
    """The page that asks who you are, and leads back to `then`."""
    return f"{reverse('account_reauthenticate')}?{urlencode({REDIRECT_FIELD_NAME: then})}"


@login_required
def confirmation(request: HttpRequest) -> HttpResponseBase:
    """allauth's page, with the plan that waits for it where the way back leads to one."""
    waiting = _waiting(request)
    context = {
        "waiting": waiting,
        "back": rows.url_of(waiting) if waiting else reverse("review"),
        "minutes": settings.ACCOUNT_REAUTHENTICATION_TIMEOUT // 60,
    }
    view = ReauthenticateView.as_view(extra_context=context)
    return cast(HttpResponseBase, view(request))


def _waiting(request: HttpRequest) -> Plan | None:
    """The plan that the person came from; None where there is none, or none of theirs."""
    then = request.POST.get(REDIRECT_FIELD_NAME) or request.GET.get(REDIRECT_FIELD_NAME, "")
    try:
        found = resolve(then)
    except Resolver404:
        return None
    if found.url_name != "plan":
        return None
    return visible_plan(request.user, found.kwargs["target"], found.kwargs["plan_id"])

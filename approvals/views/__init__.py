"""Pages of the people who decide. Closed by default: every view starts from the person."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, cast

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from plans.errors import MethodNotAllowed


class PersonRequest(HttpRequest):
    """A request of somebody who is signed in."""

    user: User
    htmx: HtmxDetails


type View[**P] = Callable[Concatenate[PersonRequest, P], HttpResponseBase]


def signed_in[**P](
    view: View[P],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Only for people with a session; others sign in first. A wrong method gets a page, too."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _sign_in(request)
        answer = view(cast(PersonRequest, request), *args, **kwargs)
        if isinstance(answer, HttpResponseNotAllowed):
            raise MethodNotAllowed(headers={"Allow": answer.headers["Allow"]})
        return answer

    return guarded


def _sign_in(request: HttpRequest) -> HttpResponseBase:
    """A fragment of a signed-out page must not put the sign-in form into the middle of a list."""
    if request.headers.get("HX-Request"):
        return HttpResponseClientRedirect(f"{reverse('account_login')}?next={reverse('review')}")
    back = request.get_full_path() if request.method == "GET" else reverse("review")
    return redirect_to_login(back)

"""Addresses of a target among Django's."""

from __future__ import annotations

from django.db import connections
from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, re_path
from django.views.decorators.csrf import csrf_exempt

from countersign_target.exchanges import Request
from countersign_target.target import Target


def urls(target: Target) -> list[URLPattern]:
    """Every address of the target, and its refusals for all others: include it with a prefix."""

    # Bearer tokens come from no browser.
    @csrf_exempt
    def countersign_target(asked: HttpRequest, path: str) -> HttpResponse:
        # One byte too many is enough for the refusal.
        body = asked.read(target.max_body + 1)
        headers = {name.lower(): value for name, value in asked.headers.items()}
        request = Request(asked.method or "", f"/{path}", headers, body, asked.GET.dict())
        answer = target.answer(request)
        return HttpResponse(answer.text, status=answer.status, headers=answer.whole_headers)

    for alias in connections:
        # The kit's transaction must be the outermost, in whichever database it is.
        countersign_target = non_atomic_requests(using=alias)(countersign_target)
    return [re_path("^(?P<path>.*)$", countersign_target, name="countersign_target")]

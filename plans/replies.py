"""Answers over HTTP: JSON as compact as it gets, and problems as machines and people read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.template.loader import render_to_string
from django.utils.http import parse_etags
from django.utils.translation import gettext, gettext_noop

from plans.problem import Problem
from plans.timestamps import rfc3339

PROBLEM_TYPE: Final = "application/problem+json"
API: Final = "/api/"
# Pages that say more than their problem can.
_TEMPLATES: Final = {
    "not-found": "404.html",
    "forbidden-origin": "403_csrf.html",
    "internal-error": "500.html",
    "database-away": "503.html",
}
_NEXT_STEP: Final = {
    "wait": gettext_noop("Wait: people, the target or this server are at work."),
    "done": gettext_noop("Nothing is left to do: it is applied."),
    "replan": gettext_noop("Make a new plan."),
    "replanning": gettext_noop("Wait: a new plan is being made."),
    "stop": gettext_noop("Nothing more can be done here."),
    "investigate": gettext_noop("Tell an operator."),
    "fix_request": gettext_noop("Correct it, then try again."),
    "retry_same": gettext_noop("Wait a few seconds, then do the same thing again."),
}
# What a person can do about it where the next action of machines says too little.
_NEXT_STEP_OF: Final = {
    "not-allowed": gettext_noop("Ask somebody who has the right, or ask an operator for it."),
    "method-not-allowed": gettext_noop("It is a button's address: press the button on its page."),
    "body-too-large": gettext_noop("Go back and send less. Nothing was stored."),
}


def problem_body(problem: Problem, instance: str) -> bytes:
    """The bytes of an application/problem+json answer (A-16)."""
    members = problem.body(
        type_base=f"{settings.BASE_URL}/problems",
        instance=instance,
        server_time=rfc3339(datetime.now(UTC)),
    )
    return json.dumps(members, separators=(",", ":"), default=str).encode()


def problem_headers(problem: Problem) -> dict[str, str]:
    """A refusal is of its moment: nobody keeps it."""
    return {"Content-Type": PROBLEM_TYPE, "Cache-Control": "no-store", **problem.headers}


def problem_reply(request: HttpRequest, problem: Problem) -> HttpResponse:
    """The problem for machines."""
    return HttpResponse(
        problem_body(problem, request.path),
        status=problem.status,
        headers=problem_headers(problem),
    )


def refuse(request: HttpRequest, problem: Problem) -> HttpResponse:
    """The problem as the caller reads it: JSON under /api/ and for whoever asks, else a page."""
    if wants_problem(request):
        return problem_reply(request, problem)
    # Without its context processors a page needs no database, which may be what is missing.
    bare = problem.status >= 500
    page = render_to_string(
        _TEMPLATES.get(problem.code, "problem.html"),
        {
            "problem": problem,
            "status": problem.status,
            "title": gettext(problem.title),
            "detail": gettext(problem.detail),
            "next_step": gettext(
                _NEXT_STEP_OF.get(problem.code) or _NEXT_STEP[problem.next_action]
            ),
            "back": _page_before(request),
            "bare": bare,
        },
        None if bare else request,
    )
    headers = {"Cache-Control": "no-store", **problem.headers}
    return HttpResponse(page, status=problem.status, headers=headers)


def _page_before(request: HttpRequest) -> str:
    """The page of this server on which the request began, as a path; "" when there is none."""
    try:
        before = urlsplit(request.headers.get("Referer", ""))
    except ValueError:
        return ""
    if not before.netloc or before.netloc != request.headers.get("Host"):
        return ""
    # One slash at the beginning: two would name another server.
    path = "/" + before.path.lstrip("/\\")
    whole = f"{path}?{before.query}" if before.query else path
    return "" if whole == request.get_full_path() else whole


def wants_problem(request: HttpRequest) -> bool:
    """Whoever calls the REST interface, holds a key (and missed the path), or says so."""
    if request.path.startswith(API) or PROBLEM_TYPE in request.headers.get("Accept", ""):
        return True
    return is_machine(request) and "text/html" not in request.headers.get("Accept", "")


def is_machine(request: HttpRequest) -> bool:
    return request.headers.get("Authorization", "").lower().startswith("bearer")


def json_reply(
    members: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """`private, no-cache`: an agent may keep it, and asks with its ETag whether it still holds."""
    body = json.dumps(members, ensure_ascii=False, separators=(",", ":"))
    return HttpResponse(
        body.encode(),
        status=status,
        content_type="application/json",
        headers={"Cache-Control": "private, no-cache", **(headers or {})},
    )


def tagged_reply(request: HttpRequest, members: Mapping[str, Any], tag: str) -> HttpResponse:
    """304 when the caller has this very representation, else 200 with its ETag (A-5)."""
    headers = {"ETag": tag, "Vary": "Authorization"}
    if not _has(request, tag):
        return json_reply(members, headers=headers)
    return HttpResponseNotModified(headers={"Cache-Control": "private, no-cache", **headers})


def placed_reply(members: Mapping[str, Any], tag: str, status: int) -> HttpResponse:
    """What a POST made or found: with its ETag, and the address at which it is read."""
    headers = {"ETag": tag, "Vary": "Authorization", "Location": members["links"]["self"]}
    return json_reply(members, status, headers)


def _has(request: HttpRequest, tag: str) -> bool:
    """RFC 9110's weak comparison, which If-None-Match asks for."""
    given = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in given or tag in {one.removeprefix("W/") for one in given}

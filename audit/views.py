"""The audit pages: for the groups of AUDIT_GROUPS and superusers, closed to everybody else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIRequest
from django.db.utils import OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from psycopg.errors import QueryCanceled

from audit.actions import Action
from audit.exports import FORMATS
from audit.filters import NOUNS, Filters
from audit.pages import Page, read_page
from audit.standing import Standing, verify_for

AUDIT_GROUPS: Final = ("managers", "operators")

type View = Callable[[HttpRequest], HttpResponseBase]


def may_audit(user: Any) -> bool:
    """Whether this person reads the whole trail (SEC-4)."""
    if not isinstance(user, User) or not user.is_active:
        return False
    groups = getattr(settings, "AUDIT_GROUPS", AUDIT_GROUPS)
    return user.is_superuser or user.groups.filter(name__in=groups).exists()


def auditors_only(view: View) -> View:
    """Strangers sign in first; people without the right get the page that says so."""

    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponseBase:
        if not may_audit(request.user):
            raise PermissionDenied
        return view(request)

    return never_cache(login_required(guarded))


@require_safe
@auditors_only
def audit(request: HttpRequest) -> HttpResponse:
    """The trail, newest first, or an intent's story (4-screens, "Audit")."""
    filters = Filters.from_query(request.GET)
    try:
        page = read_page(filters)
    except OperationalError as error:
        if not isinstance(error.__cause__, QueryCanceled):
            raise
        return _page(request, filters, Page([]), slow=True, status=503)
    return _page(request, filters, page, status=422 if filters.errors else 200)


@require_POST
@auditors_only
def audit_verification(request: HttpRequest) -> HttpResponse:
    """Verify now; the page then says who did and what was found (L-3)."""
    if isinstance(request.user, User):
        verify_for(request.user)
    return redirect(f"{reverse('audit')}#chain")


@require_safe
@auditors_only
def audit_export(request: HttpRequest) -> HttpResponseBase:
    """`?format=csv|jsonl` and the page's filters; the whole selection, oldest first."""
    filters = Filters.from_query(request.GET)
    wanted = FORMATS.get(request.GET.get("format", "csv"))
    if wanted is None:
        filters.errors["format"] = "must be csv or jsonl"
    if wanted is None or filters.errors:
        return _page(request, filters, Page([]), status=422)
    content_type, chunks = wanted
    response = StreamingHttpResponse(_streamed(request, chunks(filters)), content_type=content_type)
    name = f"audit-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.{request.GET.get('format', 'csv')}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _page(
    request: HttpRequest, filters: Filters, page: Page, *, status: int, slow: bool = False
) -> HttpResponse:
    context = {
        "filters": filters,
        "values": filters.values,
        "page": page,
        "slow": slow,
        "standing": None if filters.story else Standing.now(),
        "nouns": [(noun, [a.value for a in Action if a.startswith(f"{noun}.")]) for noun in NOUNS],
        "query": filters.query(),
    }
    return render(request, "audit/audit.html", context, status=status)


def _streamed(request: HttpRequest, chunks: Iterator[str]) -> Iterator[str] | AsyncIterator[str]:
    """Under ASGI a plain iterator would be read to its end before the first byte leaves."""
    return _awaited(chunks) if isinstance(request, ASGIRequest) else chunks


async def _awaited(chunks: Iterator[str]) -> AsyncIterator[str]:
    while (chunk := await sync_to_async(_following)(chunks)) is not None:
        yield chunk


def _following(chunks: Iterator[str]) -> str | None:
    return next(chunks, None)

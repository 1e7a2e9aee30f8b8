"""What Django itself refuses, answered like everything else that is refused (A-16, BI-47)."""

import sys
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError
from django.db import InternalError as ServerFault
from django.http import HttpRequest, HttpResponse

from plans.errors import (
    DatabaseAway,
    ForbiddenOrigin,
    InternalError,
    InvalidHeader,
    NotAllowed,
    NotFound,
)
from plans.replies import refuse

log = structlog.get_logger(__name__)
# The last: a server that turned read-only, or whose data is broken, takes no change either.
DATABASE_ERRORS = (OperationalError, InterfaceError, ServerFault)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return refuse(request, InvalidHeader("The request cannot be read."))


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return refuse(request, NotAllowed())


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return refuse(request, NotFound())


def server_error(request: HttpRequest) -> HttpResponse:
    """503 when it is the database that failed, wherever in the request that was (A-17)."""
    if isinstance(sys.exception(), DATABASE_ERRORS):
        return refuse(request, DatabaseAway())
    return refuse(request, InternalError())


def csrf_failure(request: HttpRequest, reason: str = "", **_context: Any) -> HttpResponse:
    """CSRF_FAILURE_VIEW (BI-44)."""
    log.warning("CSRF check failed", path=request.path, reason=reason)
    return refuse(request, ForbiddenOrigin())

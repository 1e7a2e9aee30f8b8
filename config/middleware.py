"""What happens around every request. All of it is synchronous: `config.asgi` makes one hop."""

import ipaddress
import re
import uuid
from collections.abc import Callable
from typing import Final

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from audit.recording import origin
from config.refusals import DATABASE_ERRORS
from plans.errors import (
    BodyTooLarge,
    DatabaseAway,
    ForbiddenOrigin,
    InternalError,
    InvalidHeader,
    MachineCannotDecide,
    MethodNotAllowed,
    NotAllowed,
    NotFound,
    Problem,
    SignInRequired,
)
from plans.replies import API, is_machine, problem_reply, refuse, wants_problem

type Handler = Callable[[HttpRequest], HttpResponseBase]

log = structlog.get_logger(__name__)
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
OWN_SITE: Final = frozenset({"same-origin", "none", ""})
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}", re.ASCII)
_BY_STATUS: Final[dict[int, type[Problem]]] = {
    400: InvalidHeader,
    401: SignInRequired,
    403: NotAllowed,
    404: NotFound,
    405: MethodNotAllowed,
    413: BodyTooLarge,
    500: InternalError,
    503: DatabaseAway,
}


class RequestContext:
    """One ID per request: in its log lines, on its events and in its answer (L-1)."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = request.headers.get("X-Request-Id", "")
        if not _REQUEST_ID.fullmatch(request_id):
            request_id = uuid.uuid4().hex
        bound = structlog.contextvars.bound_contextvars(request_id=request_id)
        with bound, origin(client_address(request), request_id):
            response = self.get_response(request)
        response.headers["X-Request-Id"] = request_id
        return response


def client_address(request: HttpRequest) -> str | None:
    """The peer, as the server in front of us has it; None for a socket without an address."""
    text = request.META.get("REMOTE_ADDR", "")
    try:
        return str(ipaddress.ip_address(text.split("%")[0]))
    except ValueError:
        return None


class Problems:
    """A refusal is a problem for whoever asks for one, and a page for everybody else (A-16)."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if not wants_problem(request):
            return response
        kind: type[Problem] | None = None
        # What is JSON already was meant so: a problem, or the report of a health check.
        is_page = response.headers.get("Content-Type", "").startswith("text/")
        if response.status_code >= 400 and is_page:
            kind = _BY_STATUS.get(response.status_code)
        elif response.headers.get("Location", "").startswith(settings.LOGIN_URL):
            kind = SignInRequired
        if kind is None:
            return response
        refusal = problem_reply(request, kind())
        if "Allow" in response.headers:
            refusal.headers["Allow"] = response.headers["Allow"]
        return refusal

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponseBase | None:
        """Views raise problems; a database that is away is one wherever it shows."""
        if isinstance(error, Problem):
            return refuse(request, error)
        if isinstance(error, DATABASE_ERRORS):
            log.error("database away", error=str(error))
            return refuse(request, DatabaseAway())
        return None


class PeopleOnly:
    """Outside the REST interface only people write, and only from our pages (SEC-5, SEC-10).

    Methods are what the request line says: no header and no form field overrides them (BI-43).
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method not in SAFE_METHODS and not request.path.startswith(API):
            if is_machine(request):
                log.warning("a machine tried to decide", path=request.path)
                return refuse(request, MachineCannotDecide())
            if request.headers.get("Sec-Fetch-Site", "").lower() not in OWN_SITE:
                log.warning("request from another site", path=request.path)
                return refuse(request, ForbiddenOrigin())
        return self.get_response(request)

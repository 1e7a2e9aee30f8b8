"""The REST interface as one document, and every refusal of it as a problem (A-15…A-18)."""

from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.db import InternalError as ServerFault
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema
from ninja.parser import Parser

from plans import api as plans_api
from plans.edge import as_problem, read_body
from plans.errors import (
    BodyTooLarge,
    DatabaseAway,
    InternalError,
    InvalidHeader,
    MalformedJson,
    NotFound,
    Problem,
)
from plans.replies import PROBLEM_TYPE, problem_reply
from plans.strict_json import MAX_BYTES

log = structlog.get_logger(__name__)

# ninja names the parameter before the members: ("body", "body", "plan", "actions").
PLACE_OF_BODY = 2


class StrictParser(Parser):
    """Our own parser before any framework sees the body (A-18)."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        return dict(
            read_body(
                request.body,
                content_type=request.headers.get("Content-Type", ""),
                content_encoding=request.headers.get("Content-Encoding", ""),
            )
        )


class Interface(NinjaAPI):
    """The API, with problems documented under their own media type."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        for methods in schema["paths"].values():
            for operation in methods.values():
                for status, answer in operation["responses"].items():
                    if status >= HTTPStatus.BAD_REQUEST and "content" in answer:
                        answer["content"] = {PROBLEM_TYPE: answer["content"]["application/json"]}
        return schema


interface = Interface(
    title="Countersign",
    version="1",
    description="An agent hands over a plan, people decide, the server commits it once.",
    urls_namespace="api",
    parser=StrictParser(),
    docs_url=None,
)
interface.add_router("", plans_api.router)


@interface.exception_handler(Problem)
def refuse_problem(request: HttpRequest, problem: Problem) -> HttpResponse:
    return problem_reply(request, problem)


@interface.exception_handler(ValidationError)
def refuse_members(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """ninja skips the parser for an empty body, which is no JSON text either (BI-11)."""
    if not request.body:
        try:
            StrictParser().parse_body(request)
        except Problem as problem:
            return problem_reply(request, problem)
    return problem_reply(request, as_problem(error.errors, skip=PLACE_OF_BODY))


@interface.exception_handler(HttpError)
def refuse_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    """ninja wraps whatever its parser raised."""
    cause = error.__cause__
    if isinstance(cause, Exception):
        return interface.on_exception(request, cause)
    return problem_reply(request, InternalError())


@interface.exception_handler(Http404)
def refuse_unknown(request: HttpRequest, error: Http404) -> HttpResponse:
    return problem_reply(request, NotFound())


@interface.exception_handler(OperationalError)
@interface.exception_handler(InterfaceError)
@interface.exception_handler(ServerFault)
def refuse_without_database(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("database away", error=str(error))
    return problem_reply(request, DatabaseAway())


@interface.exception_handler(RequestDataTooBig)
def refuse_large_body(request: HttpRequest, error: Exception) -> HttpResponse:
    return problem_reply(request, BodyTooLarge(limit=MAX_BYTES))


@interface.exception_handler(UnreadablePostError)
def refuse_broken_body(request: HttpRequest, error: Exception) -> HttpResponse:
    return problem_reply(request, MalformedJson("The body could not be read to its end."))


@interface.exception_handler(SuspiciousOperation)
def refuse_suspicious(request: HttpRequest, error: Exception) -> HttpResponse:
    return problem_reply(request, InvalidHeader())


@interface.exception_handler(Exception)
def refuse_unforeseen(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("unforeseen error", exc_info=error)
    return problem_reply(request, InternalError())

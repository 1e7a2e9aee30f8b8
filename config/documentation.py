"""The server's own documentation of its REST interface and problems: no CDN (A-15, A-16)."""

import json
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from config.api import interface
from plans.errors import CATALOGUE


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    """The OpenAPI 3.1 document."""
    return JsonResponse(interface.get_openapi_schema())


@require_safe
def api_docs(request: HttpRequest) -> HttpResponse:
    """Every operation of the OpenAPI document, as a page."""
    schema = interface.get_openapi_schema()
    operations = [
        _operation(method, path, operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = sorted(schema["components"]["schemas"].items())
    models = [{"name": name, "text": _pretty(model)} for name, model in schemas]
    return render(
        request,
        "documentation/api.html",
        {"info": schema["info"], "operations": operations, "models": models},
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> dict[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    answers = [
        {"status": str(status), "what": answer["description"], "schema": _name(answer)}
        for status, answer in operation["responses"].items()
    ]
    answers.sort(key=lambda answer: answer["status"])
    return operation | {
        "method": method.upper(),
        "path": path,
        "body": _name({"content": content}),
        "answers": [answer for answer in answers if answer["status"] < "400"],
        "refusals": [answer for answer in answers if answer["status"] >= "400"],
    }


def _name(answer: dict[str, Any]) -> str:
    """The name of the schema that an answer or a body has."""
    for media in answer.get("content", {}).values():
        return str(media["schema"].get("$ref", "")).rpartition("/")[2]
    return ""


def _pretty(model: dict[str, Any]) -> str:
    return json.dumps(model, indent=2, ensure_ascii=False)


@require_safe
def problems(request: HttpRequest) -> HttpResponse:
    """The table of every code."""
    rows = sorted((kind() for kind in CATALOGUE.values()), key=lambda problem: problem.status)
    return render(request, "documentation/problems.html", {"problems": rows})


@require_safe
def problem(request: HttpRequest, code: str) -> HttpResponse:
    """What the `type` of a problem resolves to."""
    if code not in CATALOGUE:
        raise Http404
    return render(request, "documentation/problem.html", {"problem": CATALOGUE[code]()})

"""A target in Flask: `app.register_blueprint(blueprint(target), url_prefix="/billing")`."""

from __future__ import annotations

from flask import Blueprint, Response, request

from countersign_target.exchanges import Request
from countersign_target.target import Target

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def blueprint(target: Target, name: str = "countersign_target") -> Blueprint:
    """Every address of the target, and its refusals for all others: register it with a prefix.

    Where the application checks CSRF tokens, exempt it: bearer tokens come from no browser.
    """
    made = Blueprint(name, __name__)

    def answer(path: str) -> Response:
        # One byte too many is enough for the refusal.
        body = request.stream.read(target.max_body + 1)
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Request(request.method, f"/{path}", headers, body, request.args.to_dict())
        said = target.answer(asked)
        return Response(said.text, said.status, said.whole_headers)

    made.add_url_rule(
        "/<path:path>", "answer", answer, methods=METHODS, provide_automatic_options=False
    )
    return made

"""Refusals, as `application/problem+json` (RFC 9457)."""

from collections.abc import Mapping
from typing import Any


class Problem(Exception):
    """One refusal: an HTTP status, a `code` that programs branch on, and words for people.

    `detail` and the further members never carry a plan token.
    """

    def __init__(self, status: int, code: str, detail: str, **members: Any) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code
        self.detail = detail
        self.members = members
        self.headers: Mapping[str, str] = {}

    def with_headers(self, **headers: str) -> "Problem":
        """The same refusal with HTTP headers (`Retry_After="2"` becomes `Retry-After: 2`)."""
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self

    def body(self) -> dict[str, Any]:
        """The members of the problem document."""
        return {
            "type": f"urn:problem:billing:{self.code}",
            "title": self.code.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            **self.members,
        }


def not_allowed(*errors: tuple[str, str]) -> Problem:
    """422 for well-formed JSON with values that are not allowed: (pointer, what is wrong)."""
    listed = [{"pointer": pointer, "detail": detail} for pointer, detail in errors]
    return Problem(422, "invalid-request", "Some values are not allowed.", errors=listed)

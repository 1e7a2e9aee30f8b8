"""What every refusal of this server is made of: RFC 9457 problems with a stable code (A-16)."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from inspect import cleandoc
from typing import Any, ClassVar, Self
from uuid import UUID

NEXT_ACTIONS = frozenset(
    {
        "wait",
        "done",
        "replan",
        "replanning",
        "stop",
        "investigate",
        "fix_request",
        "retry_same",
    }
)
CATALOGUE: "dict[str, type[Problem]]" = {}

_OWN_MEMBERS = frozenset(
    {"type", "title", "status", "instance", "code", "next_action", "server_time"}
)


@dataclass(frozen=True)
class FieldError:
    """One fault and where it is: an RFC 6901 pointer into the request's JSON ("" is the whole)."""

    pointer: str
    detail: str


class Problem(Exception):
    """The request was refused."""

    code: ClassVar[str]
    title: ClassVar[str]
    status: int
    next_action: str
    fixed_headers: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(
        cls,
        *,
        status: int,
        title: str,
        next_action: str = "fix_request",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """The class's name is its code, so that the two cannot drift apart."""
        super().__init_subclass__()
        cls.code = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()
        cls.status, cls.title, cls.next_action = status, title, next_action
        cls.fixed_headers = dict(headers or {})
        if next_action not in NEXT_ACTIONS or cls.code in CATALOGUE:
            raise TypeError(f"{cls.__name__}: code taken, or unknown next_action")
        CATALOGUE[cls.code] = cls

    def __init__(
        self,
        detail: str | None = None,
        *,
        errors: Sequence[FieldError] = (),
        pointer: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        """`pointer` is short for one FieldError with the same detail; `retry_after` is seconds.

        `members` (plan_id, plan_status, changed, replaced_by, decided_by, limit…) appear at the
        top level of the body; those that are None are left out.
        """
        if taken := _OWN_MEMBERS & members.keys():
            raise TypeError(f"reserved members of a problem: {sorted(taken)}")
        self.detail = detail if detail is not None else self.message()
        self.errors = list(errors)
        if pointer is not None:
            self.errors.append(FieldError(pointer, self.detail))
        self.members = {name: value for name, value in members.items() if value is not None}
        self.headers = {**self.fixed_headers, **(headers or {})}
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
        super().__init__(self.detail)

    @classmethod
    def message(cls) -> str:
        """The documented message: the docstring, on one line."""
        return " ".join(cleandoc(cls.__doc__ or cls.title).split())

    def __str__(self) -> str:
        """The code first: this is what a log line shows."""
        return f"{self.code}: {self.detail}"

    def within(self, pointer: str) -> Self:
        """The same fault, found inside a JSON text that is itself a string at `pointer`: 422.

        A pointer cannot lead into a string, so the inner place is told in words (7-interfaces).
        """
        places = [error.pointer for error in self.errors if error.pointer]
        where = f"at {places[0]} of the text" if places else f"in the text at {pointer}"
        self.detail = f"{self.detail} ({where})"
        self.errors = [FieldError(pointer, self.detail)]
        self.status = 422
        return self

    def body(self, *, type_base: str, instance: str, server_time: str) -> dict[str, Any]:
        """The members of the application/problem+json answer, ready for a JSON encoder (A-16)."""
        body: dict[str, Any] = {
            "type": f"{type_base.rstrip('/')}/{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "code": self.code,
            "next_action": self.next_action,
            "server_time": server_time,
        }
        if self.errors:
            body["errors"] = [{"pointer": e.pointer, "detail": e.detail} for e in self.errors]
        return body | {name: _plain(value) for name, value in self.members.items()}


def _plain(value: Any) -> Any:
    """Members come from model fields; the body must suit any JSON encoder."""
    if isinstance(value, datetime):
        text = value.astimezone(UTC).isoformat(timespec="milliseconds")
        return text.replace("+00:00", "Z")
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value

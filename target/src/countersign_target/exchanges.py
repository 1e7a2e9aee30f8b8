"""Requests and answers as the core knows them: no framework, no socket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from countersign_target.canonical import compact
from countersign_target.problems import Problem

JSON = "application/json"
PROBLEM_JSON = "application/problem+json"


@dataclass(frozen=True)
class Request:
    """An HTTP request. `path` begins with `/` and is decoded; `headers` have lower-case names.

    `parts`: what the braces of a route's path stand for.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)

    def header(self, name: str) -> str | None:
        """One header by its name in any case."""
        return self.headers.get(name.lower())


@dataclass(frozen=True)
class Answer:
    """An HTTP answer: a status, the text of a JSON body, and headers beside `Content-Type`."""

    status: int
    text: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, body: Any, status: int = 200, **headers: str) -> Answer:
        """An answer with `body` as compact JSON."""
        return cls(status, compact(body), headers)

    @classmethod
    def refusing(cls, problem: Problem, source: str) -> Answer:
        """The problem document of the target `source`."""
        return cls(problem.status, compact(problem.body(source)), dict(problem.headers))

    @property
    def whole_headers(self) -> dict[str, str]:
        """Every header that the answer needs but length and date, which servers add."""
        kind = PROBLEM_JSON if self.status >= 400 else JSON
        return {"Content-Type": kind, "Cache-Control": "no-store", **self.headers}

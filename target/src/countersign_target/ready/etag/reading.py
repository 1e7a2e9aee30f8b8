"""The object as the API has it now, or the reason why no plan can rest on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from countersign_target import Problem
from countersign_target.ready.etag.http import Answer, Api, NoAnswer, NotSent


@dataclass(frozen=True, slots=True)
class Seen:
    """One state of the object: its document and the strong ETag that names it."""

    etag: str
    document: dict[str, Any] = field(repr=False)


def look_at(api: Api, address: str, name: str) -> Seen:
    """GET the object. Problems: 422 where no plan is possible, 502 to 504 where nobody knows."""
    try:
        answer = api.read(address)
    except (NotSent, NoAnswer) as fault:
        raise Problem(504, "api-does-not-answer", f"The API does not answer: {fault}.") from None
    if answer.status in (404, 410):
        raise Problem(422, "no-such-object", f"The API has no {name}.")
    if answer.status != 200:
        raise _unusable(f"answers {answer.status}")
    document = answer.document
    if document is None:
        raise _unusable("answers no JSON object")
    return Seen(_strong(answer, name), document)


def _strong(answer: Answer, name: str) -> str:
    """The ETag, or why it cannot guard a write (RFC 9110: If-Match compares strongly)."""
    if answer.etag is not None:
        return answer.etag
    if answer.weak:
        raise Problem(
            422,
            "etag-not-strong",
            f"The ETag of {name} is weak, broken or not the only one: two states may share it,"
            " so If-Match cannot keep a write from landing on another state.",
        )
    raise Problem(
        422,
        "etag-missing",
        f"The API sends no ETag for {name}: a write could not be bound to what was approved.",
    )


def _unusable(words: str) -> Problem:
    return Problem(502, "api-unusable", f"The API {words} where its object is expected.")

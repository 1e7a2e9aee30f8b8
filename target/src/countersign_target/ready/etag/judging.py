"""What the API's answer to a write means, and what the caller is told of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from countersign_target import (
    Applied,
    Change,
    Later,
    NotApplied,
    Outcome,
    Plan,
    Problem,
    Unknown,
)
from countersign_target.ready.etag import difference
from countersign_target.ready.etag.config import ApiSettings
from countersign_target.ready.etag.config import Change as Operation
from countersign_target.ready.etag.http import Answer
from countersign_target.ready.etag.reading import Seen
from countersign_target.verdicts import conflict

# What these say is sure: the API did not do it. Everything else proves nothing.
REFUSALS: Final = frozenset({400, 401, 403, 405, 406, 411, 413, 414, 415, 421, 422, 428, 431, 501})
GONE: Final = frozenset({404, 410})
ETAG: Final = "(etag)"
LONGEST_WORDS: Final = 300
LONGEST_WAIT: Final = 300

type Look = Callable[[], Seen]


def unknown(detail: str) -> Unknown:
    """The write may have been carried out: nothing is stored but that it was sent."""
    return Unknown(f"It is not known whether the API did it: {detail}.")


def done(plan: Plan, answer: Answer, settings: ApiSettings, look: Look) -> Applied | Unknown:
    """What a write came to that the API says it did; `Unknown` when what it says is no proof.

    An answer with the object and another ETag than before is believed. One without, like a 204, may
    come from anything between here and the API: then the object has to show it.
    """
    if answer.status not in (200, 201, 204):
        return unknown(f"it answered {answer.status}, which promises nothing")
    if answer.body and answer.document is None:
        return unknown("it answered something that is no JSON object")
    told = answer.document is not None and answer.etag is not None
    try:
        seen = Seen(answer.etag or "", answer.document or {}) if told else look()
    except Problem as problem:
        return unknown(f"it says yes without showing it, and then: {problem.detail}")
    if seen.etag == plan.details["etag"]:
        return unknown("it says yes, and its ETag says that nothing changed")
    if not told and not shows(plan, seen, settings):
        return unknown("it says yes, and the object does not show it")
    return Applied(result(plan, seen, settings, "answer"))


def shows(plan: Plan, seen: Seen, settings: ApiSettings) -> bool:
    """Whether the object carries the plan's mark, or without marks its values."""
    return marked(plan, seen, settings) if settings.marker else as_planned(plan, seen)


def result(plan: Plan, seen: Seen, settings: ApiSettings, settled_by: str) -> dict[str, Any]:
    """The operation's result: {object, etag, fields, settled_by, differs?}.

    `fields`: what the planned fields hold now. `differs`: where that is not what was planned
    (an API may put values into a form of its own), and a marker that the API did not keep.
    """
    fields = {path: difference.at(seen.document, path) for path, _ in _planned(plan)}
    other = {
        path: {"planned": value, "stored": fields[path]}
        for path, value in _planned(plan)
        if not difference.same(value, fields[path])
    }
    if settings.marker and not marked(plan, seen, settings):
        stored = difference.at(seen.document, settings.marker)
        other[settings.marker] = {"planned": plan.plan_id, "stored": stored}
    body = {"object": plan.covers[0], "etag": seen.etag, "fields": fields}
    return {**body, "settled_by": settled_by} | ({"differs": other} if other else {})


def marked(plan: Plan, seen: Seen, settings: ApiSettings) -> bool:
    """Whether the object says itself that this plan wrote it."""
    return bool(settings.marker) and difference.at(seen.document, settings.marker) == plan.plan_id


def as_planned(plan: Plan, seen: Seen) -> bool:
    """Whether every planned field holds what was planned."""
    return all(
        difference.same(value, difference.at(seen.document, path)) for path, value in _planned(plan)
    )


def _planned(plan: Plan) -> list[tuple[str, Any]]:
    return [(action["field"], action["to"]) for action in plan.actions]


def refused(
    plan: Plan, answer: Answer, operation: Operation, settings: ApiSettings, look: Look
) -> Outcome:
    """What an answer means that is no success, to the first write of a plan. Raises Later."""
    status = answer.status
    if status == 429:
        raise Later("The API asks to come later.", _wait(answer))
    if status in GONE:
        return NotApplied(conflict(plan, [_etag(plan, None)]))
    if status == 412:
        return _not_the_same(plan, operation, settings, look)
    if status in REFUSALS:
        words = f"The API answered {status}. {_words(answer)}".strip()
        return NotApplied(Problem(422, "api-refused", words))
    return unknown(f"it answered {status}")


def _not_the_same(
    plan: Plan, operation: Operation, settings: ApiSettings, look: Look
) -> Applied | NotApplied:
    """412: not applied, and the state of now says which fields moved.

    But for a proxy that sent the write twice by itself: then the object carries the marker.
    """
    try:
        seen = look()
    except Problem:
        return NotApplied(conflict(plan, [_etag(plan, None)]))
    if marked(plan, seen, settings):
        return Applied(result(plan, seen, settings, "marker"))
    if seen.etag != plan.details["etag"]:
        return moved(plan, seen, operation, settings)
    return NotApplied(
        Problem(
            422,
            "if-match-refused",
            "The API refuses If-Match with the very ETag that it gives out: its reads and its"
            " writes do not agree, or something between rewrites one of them.",
        )
    )


def moved(plan: Plan, seen: Seen, operation: Operation, settings: ApiSettings) -> NotApplied:
    """The conflict, naming the fields; where only ignored ones moved, those, else the ETag."""
    ignored = (*operation.ignored, *filter(None, [settings.marker]))
    changes = [
        Change(each["path"], each["planned"], each["current"], each["target"])
        for each in difference.moved(
            plan.covers[0], plan.details["document"], seen.document, ignored
        )
    ]
    return NotApplied(conflict(plan, changes or [_etag(plan, seen.etag)]))


def _etag(plan: Plan, current: str | None) -> Change:
    """What can be named where the fields cannot."""
    return Change(ETAG, plan.details["etag"], current, plan.covers[0])


def _wait(answer: Answer) -> int:
    """Seconds of `Retry-After`, within reason."""
    given = answer.header("retry-after") or ""
    return min(int(given), LONGEST_WAIT) if given.isascii() and given.isdigit() else 1


def _words(answer: Answer) -> str:
    """What the API says about its refusal, where it says it in one of the usual members."""
    document = answer.document or {}
    said = (document.get(name) for name in ("detail", "message", "title", "error"))
    return next((text[:LONGEST_WORDS] for text in said if isinstance(text, str) and text), "")

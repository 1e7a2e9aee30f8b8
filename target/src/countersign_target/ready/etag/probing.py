"""Does the API keep its side? Asked with reads, and a write of nothing that must be refused."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final

from countersign_target import Problem
from countersign_target.ready.etag import difference
from countersign_target.ready.etag.config import PLACEHOLDER, Change, EtagSettings
from countersign_target.ready.etag.http import Api, NoAnswer, NotSent
from countersign_target.ready.etag.reading import Seen, look_at

KEEPS: Final = "keeps its side"


def probe(settings: EtagSettings, inputs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(operation, what is wrong or `KEEPS`) for each operation whose path these inputs fill."""
    api = Api(settings.api)
    known = {name for change in settings.changes for name in change.inputs.declared}
    unknown = [f"{name} is not known here" for name in inputs if name not in known]
    for change in settings.changes:
        if wrong := [*unknown, *_complaints(change, inputs)]:
            yield change.name, f"not asked: {', '.join(wrong)}"
            continue
        try:
            yield change.name, _asked(api, change, inputs)
        except (Problem, ValueError) as fault:
            yield change.name, getattr(fault, "detail", str(fault))


def _complaints(change: Change, inputs: Mapping[str, Any]) -> Iterator[str]:
    """Why a dry run would refuse these; what only the wishes need may be left out."""
    for name in dict.fromkeys(PLACEHOLDER.findall(change.path + change.object)):
        if name not in inputs:
            yield f"{name} is not given"
    for name, declared in change.inputs.declared.items():
        if name in inputs and (words := declared.complaint(inputs[name])):
            yield f"{name} {words}"


def _asked(api: Api, change: Change, inputs: Mapping[str, Any]) -> str:
    address, name = change.address(inputs), change.names(inputs)
    seen = look_at(api, address, name)
    if look_at(api, address, name).etag != seen.etag:
        return f"{name} has another ETag at every read, so no write could ever match"
    try:
        # No state has this ETag. Where it is ignored all the same, nothing is changed by it.
        tag = f'"countersign-probe-{secrets.token_hex(8)}"'
        answer = api.write(change.method, address, _nothing(change, seen), tag, "")
    except (NotSent, NoAnswer) as fault:
        return f"no answer to a write: {fault}"
    if 200 <= answer.status < 300:
        return f"{change.method} ignores If-Match: it would write onto a state that nobody saw"
    if answer.status != 412:
        return f"{change.method} with another ETag was answered {answer.status}, not 412"
    return KEEPS


def _nothing(change: Change, seen: Seen) -> dict[str, Any]:
    if change.method == "PATCH":
        return {}
    return difference.without(seen.document, change.read_only)

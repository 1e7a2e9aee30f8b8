"""The sentence of a plan, made from what the target said and from nothing else (B-10).

A template that cannot be filled falls back to operation plus objects: a half-filled or shortened
sentence could say less than what will happen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from approvals import formats
from audit.safe_text import visible
from plans.models import Operation, Plan
from plans.strict_json import JsonValue

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"(?P<source>from|to|delta|inputs)\.(?P<path>[^:]+)(?::(?P<spec>.+))?")
# A longer value belongs into the list of changes, in full.
_LONGEST_VALUE: Final = 80
_OBJECTS_NAMED: Final = 3


class CannotFill(Exception):
    """A template and a plan do not fit."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A filled template: its text, and the text of each value in it, objects apart."""

    text: str
    values: tuple[str, ...]


def title(plan: Plan) -> str:
    """What will happen, in one line. Unverified plans: operation and objects only (B-10)."""
    sentence = _title(plan)
    return sentence.text if sentence else fallback(plan)


def headline(plan: Plan) -> str:
    """The title's first value, like `280.00 USD`: what revisions are compared by; or empty."""
    sentence = _title(plan)
    return sentence.values[0] if sentence and sentence.values else ""


def fallback(plan: Plan) -> str:
    """`refund on invoice/4412, invoice/4413`; from four objects on `… and 2 more objects`."""
    return f"{visible(plan.operation.name)} on {_objects(plan)}"


def asked(plan: Plan) -> str:
    """`Asked for 480.00 USD; the target will refund 280.00 USD.`; empty where nothing differs."""
    template = plan.operation.asked
    if not template or not plan.verified:
        return ""
    try:
        wish = _fill(template, _Values(plan, inputs=_inputs(plan)))
    except CannotFill:
        return ""
    answer = _title(plan)
    if answer is None or not answer.values:
        return f"Asked for {wish.text}."
    if wish.values == answer.values[: len(wish.values)]:
        return ""
    return f"Asked for {wish.text}; the target will {_promise(plan)}."


def complaint(template: str, *, allow_inputs: bool) -> str | None:
    """What is wrong with a template, in words for the person who wrote it; None: nothing."""
    if "{" in _PLACEHOLDER.sub("", template) or "}" in _PLACEHOLDER.sub("", template):
        return "a brace without its partner"
    for name in _PLACEHOLDER.findall(template):
        match = _NAME.fullmatch(name)
        if name == "object":
            continue
        if match is None:
            return f"{{{name}}} is none of {{object}}, {{from.F}}, {{to.F}}, {{delta.F}}"
        if match["source"] == "inputs" and not allow_inputs:
            return f"{{{name}}}: a title says only what was read back from the target"
        if match["spec"] and not formats.is_known(match["spec"]):
            return f"{{{name}}}: unknown format {match['spec']}"
    return None


def _title(plan: Plan) -> Sentence | None:
    if not plan.operation.title or not plan.verified:
        return None
    try:
        return _fill(plan.operation.title, _Values(plan))
    except CannotFill:
        return None


def _promise(plan: Plan) -> str:
    """The title up to its first value, as the end of a sentence: `refund 280.00 USD`."""
    template = plan.operation.title
    first = next(m for m in _PLACEHOLDER.finditer(template) if m[1] != "object")
    text = _fill(template[: first.end()], _Values(plan)).text
    return text[:1].lower() + text[1:]


def _fill(template: str, values: _Values) -> Sentence:
    if complaint(template, allow_inputs=values.inputs is not None):
        raise CannotFill
    filled: list[str] = []

    def put(match: re.Match[str]) -> str:
        if match[1] == "object":
            return _objects(values.plan)
        filled.append(values.text(match[1]))
        return filled[-1]

    text = _PLACEHOLDER.sub(put, template)
    return Sentence(text, tuple(filled))


def _objects(plan: Plan) -> str:
    names = plan.objects_touched
    shown = ", ".join(visible(name) for name in names[:_OBJECTS_NAMED])
    rest = len(names) - _OBJECTS_NAMED
    return f"{shown} and {rest} more object{'s' * (rest > 1)}" if rest > 0 else shown


def _inputs(plan: Plan) -> JsonValue:
    """The stored text was parsed strictly when it came in."""
    value: JsonValue = json.loads(bytes(plan.inputs))
    return value


class _Values:
    """What placeholders stand for: fields of the plan's actions, or members of its inputs."""

    def __init__(self, plan: Plan, inputs: JsonValue = None) -> None:
        self.plan = plan
        self.inputs = inputs

    def text(self, name: str) -> str:
        match = _NAME.fullmatch(name)
        if match is None:
            raise CannotFill
        look_up: Callable[[str], JsonValue] = getattr(self, f"_{match['source']}")
        spec = match["spec"] or self._format(match["path"])
        return _text(look_up(match["path"]), spec)

    def _format(self, field: str) -> str:
        return format_of(self.plan.operation, field)

    def _action(self, field: str) -> dict[str, Any]:
        """The one action on this field: two would leave open which of them the title means."""
        found = [action for action in self.plan.actions if action.get("field") == field]
        if len(found) != 1:
            raise CannotFill
        action: dict[str, Any] = found[0]
        return action

    def _from(self, field: str) -> JsonValue:
        value: JsonValue = self._action(field).get("from")
        return value

    def _to(self, field: str) -> JsonValue:
        value: JsonValue = self._action(field).get("to")
        return value

    def _delta(self, field: str) -> JsonValue:
        return formats.minus(self._to(field), self._from(field))

    def _inputs(self, path: str) -> JsonValue:
        value = self.inputs
        for name in _steps(path, value):
            if not isinstance(value, dict) or name not in value:
                raise CannotFill
            value = value[name]
        return value


def format_of(operation: Operation, field: str) -> str:
    """The format that the operation's configuration gives a field; empty: as it is."""
    spec = operation.formats.get(field, "")
    return spec if isinstance(spec, str) and formats.is_known(spec) else ""


def _steps(path: str, value: JsonValue) -> Iterator[str]:
    """A member may itself have dots in its name."""
    if isinstance(value, dict) and path in value:
        yield path
    else:
        yield from path.split(".")


def _text(value: JsonValue, spec: str) -> str:
    """One value inside a sentence: in full, or not at all."""
    if value is None or isinstance(value, dict | list):
        raise CannotFill
    text = formats.formatted(value, spec) if spec else _plain(value)
    if not text or len(text) > _LONGEST_VALUE:
        raise CannotFill
    return text


def _plain(value: bool | int | float | str) -> str:
    return visible(value) if isinstance(value, str) else json.dumps(value)

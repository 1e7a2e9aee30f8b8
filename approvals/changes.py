"""What a plan will change, action by action, the most severe first (SEC-25)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from approvals import formats, lookalikes, rendering
from approvals.rendering import MISSING, Missing, Shown
from approvals.titles import format_of
from plans.models import Operation, Plan
from plans.strict_json import JsonValue

# What takes something away stands above what alters it, and that above what adds to it.
_TAKES_AWAY: Final = re.compile(r"delet|remov|destroy|drop|purge|revok|erase|cancel|clos")
_ADDS: Final = re.compile(r"creat|insert|add|append")


@dataclass(frozen=True, slots=True)
class Change:
    """One action as it is shown. `twin` says where two values differ that look the same."""

    op: Shown
    object: Shown
    field: Shown
    before: Shown
    after: Shown
    delta: str
    twin: str
    no_op: bool
    extra: tuple[tuple[Shown, Shown], ...]

    @property
    def update(self) -> bool:
        """The usual kind of change needs no word of its own."""
        return self.op.text == "update"


def changes(plan: Plan) -> list[Change]:
    """Every action, none left out, whatever their number."""
    ordered = sorted(plan.actions, key=lambda action: _severity(action, plan.operation))
    return [_change(action, plan.operation) for action in ordered]


def value(operation: Operation, field: str, raw: JsonValue | Missing) -> Shown:
    """A value of a field in the operation's format."""
    return rendering.show(raw, format_of(operation, field))


def _change(action: dict[str, Any], operation: Operation) -> Change:
    field = str(action.get("field", ""))
    before, after = action.get("from", MISSING), action.get("to", MISSING)
    known = ("op", "target", "field", "from", "to")
    return Change(
        op=rendering.name(action.get("op", "")),
        object=rendering.name(action.get("target", "")),
        field=rendering.name(field),
        before=value(operation, field, before),
        after=value(operation, field, after),
        delta=_delta(before, after, format_of(operation, field)),
        twin=twin(before, after),
        no_op=_same(before, after),
        extra=tuple(
            (rendering.name(key), rendering.show(item))
            for key, item in action.items()
            if key not in known
        ),
    )


def twin(before: JsonValue | Missing, after: JsonValue | Missing) -> str:
    """A warning where a string changes into one that looks the same."""
    if isinstance(before, str) and isinstance(after, str):
        return lookalikes.same_look(before, after)
    return ""


def _delta(before: JsonValue | Missing, after: JsonValue | Missing, spec: str) -> str:
    if isinstance(before, Missing) or isinstance(after, Missing):
        return ""
    return formats.difference(before, after, spec) or ""


def _same(before: JsonValue | Missing, after: JsonValue | Missing) -> bool:
    """True is not 1, and 1.0 is 1."""
    return isinstance(before, bool) == isinstance(after, bool) and before == after


def _severity(action: dict[str, Any], operation: Operation) -> tuple[int, bool, int]:
    """Sorts by what the verb does, then money before the rest, then the larger amount."""
    verb = str(action.get("op", "")).lower()
    rank = 0 if _TAKES_AWAY.search(verb) else 2 if _ADDS.match(verb) else 1
    spec = format_of(operation, str(action.get("field", "")))
    step = formats.minus(action.get("to"), action.get("from")) if spec else None
    size = abs(step) if isinstance(step, int) else 0
    return rank, not spec.startswith("money:"), -size

"""Is this dry-run response a plan we can hold? The checks of A-1, A-18, A-19 and BI-24…BI-39."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from audit.safe_text import is_deceptive
from plans import errors, timestamps
from plans.canonical import jcs
from plans.custody import Secret, check_token
from plans.models import Operation, Target

PLAN_ID: Final = re.compile(r"[A-Za-z0-9._~-]{1,128}", re.ASCII)
TASK_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)
IDEMPOTENCY_KEY: Final = re.compile(r"[A-Za-z0-9._:-]{8,128}", re.ASCII)
FINGERPRINT: Final = re.compile(r"[\x21-\x7e]{1,256}", re.ASCII)
NAME: Final = re.compile(r"[\x21-\x7e]{1,200}", re.ASCII)
MAX_ACTIONS: Final = 20
MAX_OBJECT: Final = 300
ACTION_MEMBERS: Final = ("op", "target", "field", "from", "to")


def _is_integer(_checker: object, value: object) -> bool:
    """To JSON Schema 48000.0 is an integer; readers of the inputs may not agree (BI-17)."""
    return isinstance(value, int) and not isinstance(value, bool)


_IN_A_PATTERN: Final = re.compile(r"\\d|\\.|\[(?:\\.|[^\]])*\]|\$", re.DOTALL)


@lru_cache(maxsize=512)
def _as_ecma(pattern: str) -> re.Pattern[str]:
    """JSON Schema's `$` never stands before a last newline, and its \\d is ASCII (BI-17)."""

    def translated(match: re.Match[str]) -> str:
        part = match[0]
        if part.startswith("["):
            return part.replace(r"\d", "0-9")
        return {"$": r"\Z", r"\d": "[0-9]"}.get(part, part)

    return re.compile(_IN_A_PATTERN.sub(translated, pattern))


def _pattern(
    _validator: object, pattern: str, value: object, _schema: object
) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _as_ecma(pattern).search(value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


InputsValidator: Final = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    validators={"pattern": _pattern},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """A dry-run response that passed. `token` shows itself only when asked."""

    plan_id: str
    token: Secret = field(repr=False)
    input_fingerprint: str
    expires_at_text: str
    expires_at: datetime
    created_at: datetime | None
    actions: list[dict[str, Any]]
    covers: list[str] | None
    document: Mapping[str, Any] = field(repr=False)


def inspect_plan(plan: Mapping[str, Any], operation: Operation, base: str = "/plan") -> PlanFacts:
    """Check one dry-run response, parsed strictly. Raises Problems that point into `base`."""
    plan_id = plan.get("plan_id")
    if not isinstance(plan_id, str) or not PLAN_ID.fullmatch(plan_id) or plan_id in (".", ".."):
        raise errors.InvalidPlanId(pointer=f"{base}/plan_id")
    token = check_token(plan.get("plan_token"), f"{base}/plan_token")
    fingerprint = plan.get("input_fingerprint")
    if not isinstance(fingerprint, str) or not FINGERPRINT.fullmatch(fingerprint):
        raise errors.InvalidField(
            "An input fingerprint is 1 to 256 printable ASCII characters without spaces.",
            pointer=f"{base}/input_fingerprint",
        )
    created_at = plan.get("created_at")
    return PlanFacts(
        plan_id=plan_id,
        token=Secret(token),
        input_fingerprint=fingerprint,
        expires_at_text=str(plan.get("expires_at")),
        expires_at=timestamps.parse_instant(plan.get("expires_at"), f"{base}/expires_at"),
        created_at=created_at
        if created_at is None
        else timestamps.parse_instant(created_at, f"{base}/created_at"),
        actions=inspect_actions(plan.get("actions"), operation, f"{base}/actions"),
        covers=inspect_covers(plan.get("covers"), f"{base}/covers"),
        document={name: value for name, value in plan.items() if name != "plan_token"},
    )


def inspect_actions(value: object, operation: Operation, pointer: str) -> list[dict[str, Any]]:
    """1 to 20 different actions of {op, target, field, from, to}, allowed for the operation."""
    if not isinstance(value, list):
        raise errors.MissingField("actions must be a list.", pointer=pointer)
    if not value:
        raise errors.NoActions(pointer=pointer)
    if len(value) > MAX_ACTIONS:
        raise errors.TooManyActions(pointer=pointer, limit=MAX_ACTIONS)
    seen: set[bytes] = set()
    for index, action in enumerate(value):
        _inspect_action(action, operation, f"{pointer}/{index}")
        text = jcs(action)
        if text in seen:
            raise errors.DuplicateAction(pointer=f"{pointer}/{index}")
        seen.add(text)
    return value


def _inspect_action(action: object, operation: Operation, pointer: str) -> None:
    if not isinstance(action, dict):
        raise errors.InvalidField("An action is an object.", pointer=pointer)
    for name in ACTION_MEMBERS:
        if name not in action:
            raise errors.MissingField(
                f"An action has a member {name}.", pointer=f"{pointer}/{name}"
            )
    for name in ("op", "field"):
        if not isinstance(action[name], str) or not NAME.fullmatch(action[name]):
            raise errors.InvalidField(
                f"{name} is 1 to 200 printable ASCII characters without spaces.",
                pointer=f"{pointer}/{name}",
            )
    if not is_plain_identifier(action["target"]):
        raise errors.InvalidField(
            "target names one object in 1 to 300 visible characters.", pointer=f"{pointer}/target"
        )
    if operation.ops is not None and action["op"] not in operation.ops:
        raise errors.ActionNotAllowed(pointer=f"{pointer}/op")
    if operation.fields is not None and action["field"] not in operation.fields:
        raise errors.ActionNotAllowed(pointer=f"{pointer}/field")


def is_plain_identifier(value: object) -> bool:
    """Text in which every character shows: no control, format, filler or variation (BI-32)."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_OBJECT:
        return False
    return not any(c == " " or is_deceptive(c) for c in value)


def inspect_covers(value: object, pointer: str) -> list[str] | None:
    """At most 200 objects; None: the plan does not say what it covers (A-1)."""
    if value is None:
        return None
    if not isinstance(value, list) or not all(map(is_plain_identifier, value)) or len(value) > 200:
        raise errors.InvalidField(
            "covers is a list of at most 200 objects, each 1 to 300 visible characters.",
            pointer=pointer,
        )
    return value


def check_window(facts: PlanFacts, target: Target, now: datetime, base: str = "/plan") -> datetime:
    """A-19 on the database's clock; the answer is the plan's `decide_by`."""
    window = (facts.expires_at - now).total_seconds()
    timestamps.check_window(
        facts.expires_at,
        now,
        min_seconds=target.min_window_seconds,
        max_seconds=target.max_window_seconds,
        margin_seconds=timestamps.send_margin(max(window, 0), target.total_timeout_seconds),
        pointer=f"{base}/expires_at",
    )
    return timestamps.decide_by(facts.expires_at, now, target.total_timeout_seconds)


def check_inputs(inputs: Mapping[str, Any], operation: Operation) -> None:
    """The operation's JSON Schema over the inputs; every miss is named under /inputs."""
    if operation.inputs_schema is None:
        return
    misses = InputsValidator(operation.inputs_schema).iter_errors(inputs)
    found: Sequence[errors.FieldError] = [
        errors.FieldError(_pointer("/inputs", miss.absolute_path), miss.message[:300])
        for miss in misses
    ]
    if found:
        raise errors.InputsInvalid(errors=found[:20])


def _pointer(base: str, path: Sequence[str | int]) -> str:
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return "/".join((base, *steps))

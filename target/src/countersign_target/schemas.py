"""Inputs against the owner's JSON Schema, where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from countersign_target.problems import not_allowed
from countersign_target.strict_json import escape

type Validator = Callable[[dict[str, Any]], None]
MOST_ERRORS = 20


def validator(schema: Mapping[str, Any] | None) -> Validator:
    """A check that raises 422 with pointers; without a schema, one that takes everything.

    The schema itself is checked here: an owner's mistake shows when the target is built.
    """
    if schema is None:
        return lambda inputs: None
    # Only who uses schemas needs the library.
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(schema)
    # Without it `format` is a remark: "banana" would be a date.
    checker = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)

    def check(inputs: dict[str, Any]) -> None:
        found = [
            ("".join(f"/{escape(part)}" for part in error.absolute_path), error.message[:300])
            for error, _ in zip(checker.iter_errors(inputs), range(MOST_ERRORS), strict=False)
        ]
        if found:
            raise not_allowed(*found)

    return check

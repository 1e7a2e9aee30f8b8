"""JSON Schema 2020-12 files that stand beside the configuration file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from plans import strict_json
from plans.problem import Problem

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def read(value: Any, folder: Path) -> dict[str, Any]:
    """The schema in the file that `value` names. Raises ValueError with what is wrong."""
    if not isinstance(value, str) or not value:
        raise ValueError("must be the name of a JSON Schema file beside this one")
    try:
        schema = strict_json.parse_object((folder / value).read_bytes())
    except OSError as error:
        raise ValueError(f"names a file that cannot be read: {error.strerror}") from None
    except Problem as problem:
        raise ValueError(f"names a file that is no JSON object: {problem.detail}") from None
    check(schema)
    return dict(schema)


def check(schema: Any) -> None:
    """Refuse what is no JSON Schema 2020-12, or would fetch another one when it is used."""
    if not isinstance(schema, dict):
        raise ValueError("is no JSON Schema: it must be an object")
    if schema.get("$schema", DIALECT).rstrip("#") != DIALECT:
        raise ValueError("is no JSON Schema of the 2020-12 dialect")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        pointer = "".join(f"/{strict_json.escape(part)}" for part in error.absolute_path)
        raise ValueError(f"is no valid JSON Schema: {error.message} at {pointer or '/'}") from None
    if any(not reference.startswith("#") for reference in _references(schema)):
        raise ValueError("refers to another document: a schema must be complete by itself")


def _references(part: Any) -> Iterator[str]:
    """Every `$ref`; a validator would look it up on the network at a submission."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            yield from _references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value)

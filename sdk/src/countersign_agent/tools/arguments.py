"""Arguments as models give them: checked against the tool's schema before anything is done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from countersign_agent.documents import NotStrict, read_object
from countersign_agent.errors import Misuse
from countersign_agent.tools.definitions import Schema, Tool


class BadArguments(Misuse):
    """The arguments are not those of the tool; nothing was done."""


def read_arguments(tool: Tool, given: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """A call's arguments, as an object or as the JSON text that some models write.

    BadArguments names the member; it never repeats a value, which may be a token that a model
    found somewhere.
    """
    try:
        members = read_object(given) if isinstance(given, str) else dict(given or {})
    except NotStrict as error:
        raise BadArguments(f"The arguments are {error}.") from None
    properties = tool.parameters["properties"]
    if unknown := sorted(set(members) - set(properties)):
        raise BadArguments(_not_taken(tool, unknown))
    if missing := [name for name in tool.parameters["required"] if members.get(name) is None]:
        raise BadArguments(f"{tool.name} needs {', '.join(missing)}.")
    # Models write null for what they leave out.
    present = {name: value for name, value in members.items() if value is not None}
    for name, value in present.items():
        if fault := _fault(properties[name], value):
            raise BadArguments(f"{name} {fault}.")
    return present


def _not_taken(tool: Tool, unknown: list[str]) -> str:
    if any("token" in name or "fingerprint" in name for name in unknown):
        return f"{tool.name} takes no token or fingerprint: they stay with the plan, by its ID."
    # A name may be anything a model wrote, so it is not repeated either.
    return f"{tool.name} takes only {', '.join(tool.parameters['properties'])}."


_KINDS: dict[str, type] = {"string": str, "object": Mapping, "array": list, "integer": int}


def _fault(schema: Schema, value: Any) -> str:
    """What is wrong with a value by the keywords that our own schemas use; empty: nothing.

    What an operation's inputs have to be is for its target to say.
    """
    kind = schema["type"]
    if not isinstance(value, _KINDS[kind]) or isinstance(value, bool):
        return f"has to be of type {kind}"
    if isinstance(value, str):
        return _text_fault(schema, value)
    if isinstance(value, list):
        return _list_fault(schema, value)
    if isinstance(value, int) and not schema["minimum"] <= value <= schema["maximum"]:
        return f"has to be from {schema['minimum']} to {schema['maximum']}"
    return ""


def _text_fault(schema: Schema, value: str) -> str:
    if "enum" in schema and value not in schema["enum"]:
        return f"has to be one of {', '.join(schema['enum'])}"
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value, re.ASCII):
        return "is no plan ID"
    least, most = schema.get("minLength", 0), schema.get("maxLength", len(value))
    return "" if least <= len(value) <= most else f"has to have {least} to {most} characters"


def _list_fault(schema: Schema, items: list[Any]) -> str:
    if not schema["minItems"] <= len(items) <= schema["maxItems"]:
        return f"has to have {schema['minItems']} to {schema['maxItems']} items"
    faults = (_fault(schema["items"], each) for each in items)
    return next((f"item {fault}" for fault in faults if fault), "")

"""The tools themselves: names, words and parameters, the same for every shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from countersign_agent.writes import LONGEST_OBJECT, LONGEST_TOOL, MOST_OBJECTS

type Schema = Mapping[str, Any]

LONGEST_WORDS: Final = 2_000
LONGEST_WAIT: Final = 20
"""Seconds that one `wait_for_decision` waits; with what is around it, it answers within 25."""

FROZEN: Final = (
    "A plan is for exactly these inputs, and so is the person's decision about it. To change"
    " anything, propose the new inputs as a new plan, with the old plan_id in `replaces`; never"
    " treat one plan's approval as another's."
)
_PLAN_ID: Final = {"type": "string", "pattern": r"^[A-Za-z0-9._~-]{1,128}$"}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `parameters` is a JSON Schema 2020-12 of its arguments.

    `destructive`: what it asks for may overwrite or end something. `idempotent`: calling it again
    with the same arguments adds nothing.
    """

    name: str
    title: str
    description: str
    parameters: Schema = field(repr=False)
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = True


@dataclass(frozen=True, slots=True)
class Offer:
    """An operation that a program lets its model propose; `inputs` is their JSON Schema."""

    target: str
    operation: str
    description: str = ""
    inputs: Schema = field(default_factory=lambda: {"type": "object"})


def _words(description: str, longest: int = LONGEST_WORDS) -> dict[str, Any]:
    return {
        "type": "string",
        "minLength": 1,
        "maxLength": longest,
        "description": description,
    }


def _plan_id(description: str) -> dict[str, Any]:
    return {**_PLAN_ID, "description": description}


def _object(optional: Sequence[str] = (), **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


PROPOSE_WRITE: Final = Tool(
    "propose_write",
    "Propose a write",
    "Plan a write at a target and hand the plan to the people who decide. Nothing is written by"
    " this call: a person approves or rejects the plan, and only then it is applied, once."
    f" {FROZEN} Calling it again with the same arguments makes nothing new: it tells what became"
    " of the first call. Do what `next_action` says; on `wait`, ask for the plan's status later.",
    _object(
        ("replaces",),
        target=_words("The system that owns the data, by its name.", 200),
        operation=_words("The kind of write at that target, by its name.", 200),
        inputs={
            "type": "object",
            "description": "What exactly to write, as the operation takes it. Frozen in the plan.",
        },
        reason=_words("Why it is needed, for the person who decides."),
        replaces=_plan_id("Only when the inputs changed: the plan that this one replaces."),
    ),
    destructive=True,
)
PLAN_STATUS: Final = Tool(
    "plan_status",
    "Look at a plan",
    "What is true of a plan now, or of the one that took its place: `status`, `next_action`, the"
    " changes, the person's decision and note, and what the target answered once it was applied."
    " Do not call a write done before `status` is `committed`.",
    _object(plan_id=_plan_id("As propose_write returned it.")),
    read_only=True,
)
WAIT_FOR_DECISION: Final = Tool(
    "wait_for_decision",
    "Wait for the decision",
    f"Wait until a person decided about a plan and it was applied, at most {LONGEST_WAIT} seconds,"
    " then tell its status. People take minutes or hours: while `next_action` is `wait` or"
    " `replanning`, call it again. Nobody can approve by answering it.",
    _object(
        ("seconds",),
        plan_id=_plan_id("As propose_write returned it."),
        seconds={
            "type": "integer",
            "minimum": 1,
            "maximum": LONGEST_WAIT,
            "description": f"How long to wait at most; {LONGEST_WAIT} when it is left out.",
        },
    ),
    read_only=True,
)
REPORT_WRITE: Final = Tool(
    "report_write",
    "Report a write made elsewhere",
    "Say that another tool wrote to objects that plans may be about. Plans that cover them are"
    " stale: they are planned again before anybody can approve them. Call it after every write"
    " that did not go through propose_write; reads are not reported.",
    _object(
        objects={
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_OBJECTS,
            "items": {"type": "string", "minLength": 1, "maxLength": LONGEST_OBJECT},
            "description": 'What was written to, like ["invoice/4412"]; ["*"]: it may be anything.',
        },
        tool=_words("The tool that wrote.", LONGEST_TOOL),
    ),
)
WITHDRAW: Final = Tool(
    "withdraw",
    "Withdraw a plan",
    "Say that a plan is not wanted any more. It is abandoned and nobody can approve it; one that"
    " is being applied at this moment cannot be withdrawn, and its outcome is told as it is."
    " To change the inputs use propose_write with `replaces` instead.",
    _object(
        ("note",),
        plan_id=_plan_id("As propose_write returned it."),
        note=_words("Why, for the people who saw it."),
    ),
    destructive=True,
)
END_TASK: Final = Tool(
    "end_task",
    "End the task",
    "Say that the whole task is over. Every plan of it that nobody decided yet is abandoned, so"
    " call it only when nothing is waited for any more.",
    _object(("outcome",), outcome=_words("What came of the task, in a sentence.")),
    destructive=True,
)
TOOLS: Final = (PROPOSE_WRITE, PLAN_STATUS, REPORT_WRITE, WITHDRAW, END_TASK)


def offering(offers: Sequence[Offer], tools: Sequence[Tool] = TOOLS) -> tuple[Tool, ...]:
    """The tools with the operations that there are: names as choices, inputs as they have to be."""
    return tuple(
        _naming(tool, offers) if offers and tool.name == PROPOSE_WRITE.name else tool
        for tool in tools
    )


def _naming(tool: Tool, offers: Sequence[Offer]) -> Tool:
    schemas = [each.inputs for each in offers]
    kinds: Schema = schemas[0] if len(schemas) == 1 else {"type": "object", "anyOf": schemas}
    given = tool.parameters["properties"]
    properties = {
        **given,
        "target": given["target"] | {"enum": sorted({each.target for each in offers})},
        "operation": given["operation"] | {"enum": sorted({each.operation for each in offers})},
        "inputs": {"description": given["inputs"]["description"], **kinds},
    }
    listed = "; ".join(
        f"{each.operation} at {each.target}"
        + (f" ({each.description})" if each.description else "")
        for each in offers
    )
    parameters = {**tool.parameters, "properties": properties}
    return replace(
        tool, description=f"{tool.description} There is: {listed}.", parameters=parameters
    )

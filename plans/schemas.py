"""Bodies of requests of the REST interface: strict, and nothing unknown (A-1, A-8, A-12).

The error types of validators are codes of the table of problems; `plans.edge` makes problems of
them. What only the target or the stored rows can tell is checked by the verbs.
"""

import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from plans import strict_json
from plans.canonical import jcs
from plans.errors import InvalidField, UnknownField
from plans.inspection import IDEMPOTENCY_KEY, MAX_ACTIONS, PLAN_ID, TASK_ID

MAX_SAFE_ID = strict_json.SAFE_INTEGER
PLAN_MEMBERS = frozenset(
    {"plan_id", "plan_token", "expires_at", "input_fingerprint", "actions", "created_at", "covers"}
)


class Strict(BaseModel):
    """A "48000" is no number, a 1 no boolean, an unknown or wrongly cased member no member."""

    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)


def _matching(pattern: re.Pattern[str], code: str, what: str) -> BeforeValidator:
    def check(value: object) -> object:
        if isinstance(value, str) and not pattern.fullmatch(value):
            raise PydanticCustomError(code, what)
        return value

    return BeforeValidator(check)


def is_plan_id(text: str) -> bool:
    """Whether a text can be a plan ID at all (BI-29)."""
    return PLAN_ID.fullmatch(text) is not None and text not in (".", "..")


def _refuse_dots(value: object) -> object:
    if value in (".", ".."):
        raise PydanticCustomError("invalid-plan-id", 'A plan ID is neither "." nor "..".')
    return value


Name = Annotated[str, Field(min_length=1, max_length=100)]
TaskId = Annotated[
    str,
    _matching(TASK_ID, "invalid-field", "A task_id is 1 to 128 ASCII letters, digits and . _ : -"),
    Field(json_schema_extra={"pattern": "^[A-Za-z0-9._:-]{1,128}$"}),
]
PlanId = Annotated[
    str,
    _matching(PLAN_ID, "invalid-plan-id", "A plan ID is 1 to 128 ASCII letters, digits, . _ ~ -"),
    BeforeValidator(_refuse_dots),
    Field(json_schema_extra={"pattern": "^[A-Za-z0-9._~-]{1,128}$"}),
]
IdempotencyKey = Annotated[
    str,
    _matching(
        IDEMPOTENCY_KEY,
        "invalid-idempotency-key",
        "An idempotency key is 8 to 128 ASCII letters, digits and . _ : -",
    ),
    Field(json_schema_extra={"pattern": "^[A-Za-z0-9._:-]{8,128}$"}),
]
Url = Annotated[
    str,
    Field(max_length=2000),
    _matching(
        re.compile(r"https?://[\x21-\x7e]+", re.ASCII),
        "invalid-field",
        "An evidence URL begins with https:// or http:// and is printable ASCII.",
    ),
]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The exact text for the dry run, kept byte for byte, and what it means."""

    raw: bytes = field(repr=False)
    value: strict_json.JsonObject = field(repr=False)


def read_inputs(value: object) -> Inputs:
    """A text that is a strict JSON object, or an object, which becomes its RFC 8785 text (A-1)."""
    if isinstance(value, str):
        return Inputs(value.encode(), strict_json.parse_text(value, "/inputs"))
    if isinstance(value, dict):
        return Inputs(jcs(value), value)
    raise InvalidField("inputs is a JSON text (a string), or an object.", pointer="/inputs")


InputsText = Annotated[
    Inputs,
    PlainValidator(read_inputs),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "contentMediaType": "application/json"},
                {"type": "object"},
            ],
            "description": "The exact text sent to the dry run; an object is kept as RFC 8785.",
        }
    ),
]


class EvidenceIn(Strict):
    """One read the agent found, in its own words (A-9)."""

    label: str = Field(min_length=1, max_length=200)
    text: str | None = None
    url: Url | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.text is None and self.url is None:
            raise PydanticCustomError("missing-field", "Evidence has a text or a url.")
        return self


class ActionDoc(BaseModel):
    """One change: `target` is the object, like `invoice/4412`. Further members are kept."""

    model_config = ConfigDict(extra="allow")

    op: str
    target: str
    field: str
    from_: Any = Field(alias="from")
    to: Any


class PlanDoc(BaseModel):
    """The dry-run response as received; `plans.inspection` reads it. Further members are kept."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "dependentRequired": {
                "plan_token": ["plan_id", "input_fingerprint", "expires_at"],
                "input_fingerprint": ["plan_token"],
            }
        },
    )

    plan_id: PlanId
    plan_token: str = Field(min_length=1, max_length=16_384, json_schema_extra={"writeOnly": True})
    expires_at: str = Field(min_length=1, json_schema_extra={"format": "date-time"})
    input_fingerprint: str = Field(min_length=1, max_length=256)
    actions: list[ActionDoc] = Field(min_length=1, max_length=MAX_ACTIONS)
    created_at: str | None = Field(None, json_schema_extra={"format": "date-time"})
    covers: list[str] | None = None


def _plan_member(value: object) -> object:
    """Unknown members are kept, but a known one in the wrong case is a mistake (BI-16)."""
    if isinstance(value, dict):
        for name in value:
            if name not in PLAN_MEMBERS and name.lower() in PLAN_MEMBERS:
                raise UnknownField("Names are case-sensitive.", pointer=f"/plan/{name}")
    return value


def _plan_schema() -> dict[str, Any]:
    """Without references: it is embedded in the schema of the request."""
    schema = PlanDoc.model_json_schema()
    schema["properties"]["actions"]["items"] = schema.pop("$defs")["ActionDoc"]
    return schema


PlanMember = Annotated[
    dict[str, Any], BeforeValidator(_plan_member), WithJsonSchema(_plan_schema())
]


class Wish(Strict):
    """What both ways in have: the write that is wanted, and why."""

    target: Name
    operation: Name
    task_id: TaskId
    inputs: InputsText
    summary: str | None = None
    reason: str | None = None


class IntentIn(Wish):
    """`POST /intents`: the app runs the dry run itself (A-12)."""


class SubmissionIn(Wish):
    """`POST /plans`: a dry-run response, and what it was for (A-1)."""

    plan: PlanMember
    evidence: Annotated[list[EvidenceIn], Field(max_length=50)] | None = None
    replaces: PlanId | None = None
    replan_id: Annotated[int, Field(ge=1, le=MAX_SAFE_ID)] | None = None
    idempotency_key: IdempotencyKey | None = None

    # The member `plan` in the order received: it is kept so.
    _plan_as_received: dict[str, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _keep_order(cls, value: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        made = read(value)
        made._plan_as_received = value["plan"]
        return made

    @property
    def received_plan(self) -> dict[str, Any]:
        return self._plan_as_received


class AbandonmentIn(Strict):
    """Why the agent wants nothing of it any more (A-8)."""

    reason: Literal["task_end", "intent_changed", "expiry", "other"]
    note: str | None = Field(None, max_length=4000)


Object = Annotated[str, Field(min_length=1, max_length=300)]


class WritesIn(Strict):
    """What a tool of the agent's wrote; `["*"]` means that it may have been anything (A-10)."""

    objects: list[Object] = Field(min_length=1, max_length=200)
    tool: str = Field(min_length=1, max_length=200)


class TaskEndIn(Strict):
    """The agent is done with its task (A-11)."""

    outcome: str | None = Field(None, max_length=4000)


class ClaimIn(Strict):
    """Nothing: any open re-plan; a `replan_id`: that one again, which renews its lease (A-13)."""

    replan_id: Annotated[int, Field(ge=1, le=MAX_SAFE_ID)] | None = None


class FailureIn(Strict):
    """Why it cannot be planned now (A-13)."""

    reason: str = Field(min_length=1, max_length=2000)

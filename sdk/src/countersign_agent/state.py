"""What a task knows between two calls, and between two processes: explicit, and never a transcript.

A state belongs to one task. It holds the dry run's answer byte for byte, the inputs it was made
for, the target's fingerprint, when it expires, whether something it covers was written since, the
key of its commit and every attempt. Tokens leave it only into a request or into its store.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NoReturn

from countersign_agent.documents import Json, NotStrict, read_object
from countersign_agent.errors import StateDamaged, UnexpectedAnswer, UnknownPlan
from countersign_agent.reading import Read, write
from countersign_agent.results import Action, Change, Plan
from countersign_agent.secret import Secret

VERSION: Final = 1

PlanStatus = Literal[
    "planned",
    "submitting",
    "submitted",
    "committing",
    "unknown",
    "unresolved",
    "committed",
    "failed",
    "expired",
    "conflicted",
    "stale",
    "abandoned",
    "superseded",
]
IN_DOUBT: Final = frozenset({"committing", "unknown", "unresolved"})
"""A commit may have been sent, and what became of it is not known."""
OVER: Final = frozenset(
    {
        *("committed", "failed", "expired", "conflicted", "stale", "abandoned", "superseded"),
        *("rejected", "mismatched", "changes_requested"),
    }
)
"""Of a plan here or at the server."""
_ANSWERED: Final = frozenset({"committed", "rejected"})
ANY_OBJECT: Final = "*"


@dataclass(slots=True)
class Attempt(Read):
    """One call to commit. It is stored before the call is made: a crash leaves it `begun`."""

    number: int
    begun_at: datetime
    outcome: str = "begun"
    reason: str = ""


@dataclass(slots=True)
class HeldPlan(Read):
    """One plan of an intent, with what only this process and the target know."""

    plan_id: str
    fingerprint: str
    received_at: datetime
    expires_at: datetime
    actions: tuple[Action, ...]
    covers: tuple[str, ...] | None
    key: str
    """Of its commit: made with the plan, the same for every attempt."""
    status: PlanStatus = "planned"
    response: Secret | None = None
    """The dry run's answer, byte for byte; dropped with the token."""
    token: Secret | None = None
    dirty: str = ""
    """The tool that wrote to something that this plan covers; empty: none."""
    attempts: list[Attempt] = field(default_factory=list)
    result: Json = None
    changed: tuple[Change, ...] | None = None
    reason: str = ""
    replaces: str | None = None
    replan_id: int | None = None
    """What it is handed over as: the successor of this plan ID, the answer to this re-plan."""
    server: Plan | None = None
    """The plan as the server told it last; None before it was handed over."""

    @property
    def in_doubt(self) -> bool:
        """Whether it may have been applied without our knowing."""
        return (self.server.status if self.server else self.status) in IN_DOUBT

    @property
    def over(self) -> bool:
        """Whether nothing can come of it any more."""
        return (self.server.status if self.server else self.status) in OVER

    @property
    def ends_intent(self) -> bool:
        """Whether it is over and no other plan follows by itself."""
        if self.server is not None:
            return self.over and self.server.next_action in ("done", "stop", "fix_request")
        return self.status in ("committed", "failed", "abandoned")

    @property
    def answers_wish(self) -> bool:
        """Whether the same wish again is answered by it: it was granted, or a person refused."""
        done = self.server is not None and self.server.next_action == "done"
        return done or (self.server.status if self.server else self.status) in _ANSWERED

    def objects(self) -> frozenset[str] | None:
        """What it is about; None: the target does not say, so it may be anything."""
        if self.covers is None:
            return None
        return frozenset(self.covers) | {action.target for action in self.actions}

    def touches(self, objects: frozenset[str] | None) -> bool:
        """Whether it is about any of these objects. In doubt it is."""
        mine = self.objects()
        return mine is None or objects is None or ANY_OBJECT in objects or bool(mine & objects)

    def margin(self, longest: float) -> timedelta:
        """The time before its expiry after which no first commit is sent (T-3)."""
        return min(timedelta(seconds=longest), (self.expires_at - self.received_at) / 4)

    def drop_token(self) -> None:
        """Nothing here can send it any more."""
        self.token = self.response = None


@dataclass(slots=True)
class HeldIntent(Read):
    """One write that is wanted, with the one text of its inputs and every plan made for it."""

    target: str
    operation: str
    inputs: bytes
    summary: str = ""
    reason: str = ""
    evidence: list[dict[str, str]] = field(default_factory=list)
    intent_id: str = ""
    """The server's, once it is known; the server makes the plans of an intent opened there."""
    opened_there: bool = False
    """Whether the server was asked to make the dry run itself."""
    plans: list[HeldPlan] = field(default_factory=list)

    @property
    def current(self) -> HeldPlan | None:
        """The latest plan; only this one is ever sent."""
        return self.plans[-1] if self.plans else None

    @property
    def closed(self) -> bool:
        """Whether nothing can come of it any more."""
        return self.current is not None and self.current.ends_intent

    def answers(self, target: str, operation: str, inputs: bytes) -> bool:
        """Whether exactly this is wanted here already, and is not to be wanted anew."""
        if (self.target, self.operation, self.inputs) != (target, operation, inputs):
            return False
        return not self.closed or (self.current is not None and self.current.answers_wish)


@dataclass(slots=True)
class Write(Read):
    """A tool's write that the server has not been told yet."""

    objects: tuple[str, ...]
    tool: str


@dataclass(slots=True)
class TaskState(Read):
    """Everything about one task. Neither printed with its secrets nor pickled."""

    task_id: str
    intents: list[HeldIntent] = field(default_factory=list)
    unreported: list[Write] = field(default_factory=list)
    ended: bool = False
    outcome: str = ""
    saving: threading.Lock = field(
        init=False, repr=False, compare=False, default_factory=threading.Lock
    )

    def find(self, plan_id: str) -> tuple[HeldIntent, HeldPlan]:
        """The plan of this ID, and its intent. UnknownPlan."""
        for intent, plan in self.plans():
            if plan.plan_id == plan_id:
                return intent, plan
        raise UnknownPlan(f"There is no plan {plan_id[:200]!r} in the task {self.task_id}.")

    def plans(self) -> Iterator[tuple[HeldIntent, HeldPlan]]:
        """Every plan of the task, the oldest first."""
        for intent in list(self.intents):
            for plan in list(intent.plans):
                yield intent, plan

    def current(self) -> Iterator[tuple[HeldIntent, HeldPlan]]:
        """The latest plan of each intent."""
        for intent in list(self.intents):
            if intent.current is not None:
                yield intent, intent.current

    def same(self, target: str, operation: str, inputs: bytes) -> HeldIntent | None:
        """The latest intent that wants exactly this, if the wish still stands or was answered."""
        for intent in reversed(self.intents):
            if intent.answers(target, operation, inputs):
                return intent
        return None

    def in_doubt(self, objects: frozenset[str] | None, target: str) -> HeldPlan | None:
        """A plan at this target whose outcome is not known and that is about these objects."""
        for intent, plan in self.current():
            if intent.target == target and plan.in_doubt and plan.touches(objects):
                return plan
        return None

    def mark_written(self, objects: frozenset[str], tool: str) -> list[HeldPlan]:
        """Set the dirty flag of every plan that a write of these objects touches (A-10)."""
        hit = [
            plan
            for _, plan in self.current()
            if not plan.over and not plan.in_doubt and plan.touches(objects)
        ]
        for plan in hit:
            plan.dirty = tool
        return hit

    def text(self) -> Secret:
        """The state as a store keeps it."""
        return Secret(json.dumps({"version": VERSION, "task": write(self)}, ensure_ascii=False))

    @classmethod
    def parse(cls, text: Secret) -> TaskState:
        """The state that a store kept. StateDamaged: nothing is guessed."""
        try:
            return cls.read(_of_this_version(read_object(text.reveal())))
        except (NotStrict, UnexpectedAnswer) as error:
            fault = type(error).__name__
        # Outside of the handler: no frame that comes along has a token in a variable.
        raise StateDamaged(f"The stored state cannot be read ({fault}).")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a task's state is neither pickled nor copied: give it a store")


def _of_this_version(members: dict[str, Any]) -> Any:
    if members.get("version") != VERSION:
        raise NotStrict("another version")
    return members.get("task")


def new_key() -> str:
    """An idempotency key: of one plan's commit, for all its attempts."""
    return f"idem_{uuid.uuid4()}"

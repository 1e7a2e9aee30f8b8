"""One task's desk: its state, who may work on it, and what holds for every verb."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from countersign_agent.documents import freeze_inputs
from countersign_agent.errors import (
    FingerprintDisagreement,
    InputsChanged,
    OutcomeUnknown,
    PlanReplaced,
    TaskOver,
    TokenDisagreement,
)
from countersign_agent.flows import Flow, Lock, alone, do
from countersign_agent.results import Writes
from countersign_agent.secret import Secret
from countersign_agent.state import HeldIntent, HeldPlan, TaskState
from countersign_agent.surroundings import Surroundings
from countersign_agent.views import Written
from countersign_agent.writes import report, write_down


@dataclass(frozen=True, slots=True)
class Believed:
    """What a caller believes about a plan. It is compared with the state, and never sent."""

    inputs: Mapping[str, Any] | None = None
    plan_token: Secret | str | None = field(default=None, repr=False)
    input_fingerprint: str | None = None

    def check(self, intent: HeldIntent, plan: HeldPlan) -> None:
        """InputsChanged, TokenDisagreement, FingerprintDisagreement."""
        if self.inputs is not None and freeze_inputs(self.inputs) != intent.inputs:
            raise InputsChanged
        believed = self.input_fingerprint
        if believed is not None and believed != plan.fingerprint:
            raise FingerprintDisagreement
        token = self.plan_token
        if isinstance(token, str):
            token = Secret(token)
        if token is not None and plan.token != token:
            raise TokenDisagreement


class Desk:
    """Opens the state at the first verb, and lets one verb at a time work on it."""

    def __init__(self, around: Surroundings, task_id: str, lock: Callable[[], Lock]) -> None:
        self.around = around
        self.task_id = task_id
        self.lock = lock()
        self._opening = lock()
        self.known: TaskState | None = None

    def open(self) -> Flow[TaskState]:
        """Hold the task and read what is known of it. StateHeld, StateDamaged."""
        if self.known is not None:
            return self.known
        return (yield from alone(self._opening, self._open()))

    def _open(self) -> Flow[TaskState]:
        if self.known is not None:
            return self.known
        store = self.around.store
        yield from do(store.hold, self.task_id)
        try:
            text = yield from do(store.load, self.task_id)
            state = TaskState.parse(text) if text is not None else TaskState(self.task_id)
        except BaseException:
            store.release(self.task_id)
            raise
        self.known = state
        self.around.desks[self.task_id] = self
        return state

    def working(self) -> Flow[TaskState]:
        """The state of a task that is not over. TaskOver."""
        state = yield from self.open()
        if state.ended:
            raise TaskOver(f"The task {self.task_id} has ended.")
        return state

    def close(self) -> Flow[None]:
        """Put the task down: another process may take it up again."""
        if self.known is not None:
            self.known = None
            self.around.desks.pop(self.task_id, None)
            yield from do(self.around.store.release, self.task_id)

    # ── What holds before anything is sent ──────────────────────────────────────────────────
    @staticmethod
    def latest(state: TaskState, plan_id: str) -> tuple[HeldIntent, HeldPlan]:
        """The plan, which has to be the latest of its intent. UnknownPlan, PlanReplaced."""
        intent, plan = state.find(plan_id)
        if intent.current is not plan and intent.current is not None:
            raise PlanReplaced(plan_id, intent.current.plan_id)
        return intent, plan

    @staticmethod
    def refuse_doubt(
        state: TaskState, target: str, objects: frozenset[str] | None, but: HeldPlan | None = None
    ) -> None:
        """OutcomeUnknown while a commit about these objects may or may not have been applied."""
        doubtful = state.in_doubt(objects, target)
        if doubtful is not None and doubtful is not but:
            raise OutcomeUnknown(doubtful.plan_id)

    # ── The dirty flag ──────────────────────────────────────────────────────────────────────
    def about_to_write(self, objects: Sequence[str], tool: str) -> Flow[None]:
        """Before a write: what it touches must not be sent while it runs, nor approved."""
        state = yield from self.open()
        if any(not plan.over for _, plan in state.current()):
            yield from write_down(self.around, state, objects, tool)

    def written(self, objects: Sequence[str], tool: str) -> Flow[Written]:
        """After a write, whatever came of it: plans that it touches are never sent."""
        state = yield from self.open()
        return (yield from write_down(self.around, state, objects, tool))

    def report(self, state: TaskState) -> Flow[Writes | None]:
        """Tell the server of writes that it has not been told of."""
        return (yield from report(self.around, state))

"""Dry runs: from the frozen text of the inputs to a plan with everything that its commit needs."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from countersign_agent.documents import NotStrict, read_object
from countersign_agent.errors import (
    DryRunRefused,
    FingerprintDisagreement,
    TargetAway,
    TargetMisbehaved,
    UnexpectedAnswer,
)
from countersign_agent.exchanges import Answer
from countersign_agent.flows import Flow, do
from countersign_agent.instants import read_instant
from countersign_agent.problems import read_problem, retry_after
from countersign_agent.results import Action
from countersign_agent.secret import Secret
from countersign_agent.state import HeldIntent, HeldPlan, TaskState, new_key
from countersign_agent.surroundings import Surroundings

NOTHING_TO_CHANGE: Final = "nothing-to-change"
_PAUSES: Final = (0.5, 2.0, 5.0)
_TRY_AGAIN: Final = frozenset({408, 425, 429})
_PLAN_ID: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._~-]{1,128}", re.ASCII)


def dry_run(around: Surroundings, state: TaskState, intent: HeldIntent) -> Flow[HeldPlan]:
    """A fresh plan for an intent, not yet part of it. It changes nothing at the target.

    Raises DryRunRefused, TargetAway, TargetMisbehaved; FingerprintDisagreement when the target
    gives a plan ID again with another fingerprint.
    """
    target = around.target(intent.target)
    for pause in (*_PAUSES, None):
        exchange = yield from do(target.dry_run, intent.operation, intent.inputs)
        if isinstance(exchange, Answer) and exchange.status == 200:
            plan = read_dry_run(exchange, around.clock())
            _refuse_known(state, plan)
            return plan
        if isinstance(exchange, Answer) and _is_refusal(exchange.status):
            raise DryRunRefused(read_problem(exchange))
        if pause is not None:
            asked = retry_after(exchange) if isinstance(exchange, Answer) else None
            yield from around.wait(max(pause, min(asked or 0.0, 30.0)))
    raise TargetAway(f"{intent.target} gave no usable answer to a dry run.")


def _is_refusal(status: int) -> bool:
    return 400 <= status < 500 and status not in _TRY_AGAIN


def read_dry_run(answer: Answer, now: datetime) -> HeldPlan:
    """The plan of a dry run's answer, which is kept byte for byte. TargetMisbehaved.

    The expiry becomes UTC here, once; the fingerprint is the target's and never computed.
    """
    try:
        return _read(answer, now)
    except (KeyError, TypeError, ValueError, NotStrict, UnexpectedAnswer) as error:
        fault = type(error).__name__
    # Outside of the handler: no frame that comes along has a token in a variable.
    raise TargetMisbehaved(f"A dry run's answer lacks something or cannot be read ({fault}).")


def _read(answer: Answer, now: datetime) -> HeldPlan:
    members = read_object(answer.body)
    return HeldPlan(
        plan_id=_matching(members["plan_id"]),
        fingerprint=_words(members["input_fingerprint"]),
        received_at=now,
        expires_at=read_instant(members["expires_at"]),
        actions=tuple(Action.read(each) for each in _items(members["actions"])),
        covers=_covers(members.get("covers")),
        key=new_key(),
        response=Secret(answer.body.decode()),
        token=Secret(_words(members["plan_token"])),
    )


def _words(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value


def _matching(value: Any) -> str:
    if not _PLAN_ID.fullmatch(_words(value)):
        raise ValueError
    return str(value)


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise TypeError
    return value


def _covers(value: Any) -> tuple[str, ...] | None:
    return None if value is None else tuple(_words(each) for each in _items(value))


def _refuse_known(state: TaskState, fresh: HeldPlan) -> None:
    for _, plan in state.plans():
        if plan.plan_id == fresh.plan_id:
            if plan.fingerprint != fresh.fingerprint:
                raise FingerprintDisagreement(
                    f"The target gave {plan.plan_id} again, with another fingerprint.",
                    next_action="investigate",
                )
            raise TargetMisbehaved(f"The target gave the known plan {plan.plan_id} again.")

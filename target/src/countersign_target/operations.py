"""What an owner declares: two functions and some figures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from countersign_target.exchanges import Request
from countersign_target.plans import Action, Outcome, Plan, Planned, State
from countersign_target.problems import Problem
from countersign_target.schemas import Validator, validator

WINDOW_HEADER: Final = "Plan-Seconds"
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)

type PlanFunction = Callable[[dict[str, Any], State], Planned | Sequence[Action]]
type Lifespan = Callable[[Request], timedelta]
type ApplyFunction = Callable[[Plan], dict[str, Any] | Outcome]


def asked_lifespan(
    usual: timedelta,
    shortest: timedelta = timedelta(seconds=5),
    longest: timedelta = timedelta(hours=24),
) -> Lifespan:
    """A lifespan that a dry run may choose by the header `Plan-Seconds`; 400 beyond the limits.

    For callers who want to approve later, and for whoever tests what happens to a late plan.
    """

    def lifespan(request: Request) -> timedelta:
        header = request.header(WINDOW_HEADER)
        if header is None:
            return usual
        if re.fullmatch(r"[0-9]{1,6}", header, re.ASCII):
            window = timedelta(seconds=int(header))
            if shortest <= window <= longest:
                return window
        limits = f"{shortest.total_seconds():g} to {longest.total_seconds():g}"
        raise Problem(400, "bad-header", f"{WINDOW_HEADER} must be {limits}.")

    return lifespan


@dataclass(frozen=True)
class Outside:
    """The effect happens in another system, so it cannot share a transaction with its key.

    The kit stores the key and `sending` first, commits that, calls `apply` without a transaction,
    and stores what came of it. `apply` returns a result (or one of the outcomes below), or raises:
    `Conflict` or another Problem below 500 (certainly not applied, for ever), `Later` (certainly
    nothing was sent); anything else leaves the outcome unknown, and the caller is told so.

    `look(plan)` finds out about an earlier try that nobody knows the end of; it is asked before
    anything is sent again, and by a read-back. It returns `Applied`, `NotApplied`,
    `PartlyApplied`, `SendAgain` (not there, and the other system refuses a second one by itself:
    If-Match, a key of its own) or `Unknown`. `lease_seconds`: longer than `apply` can take; within
    it a try counts as running, and answers are `in_progress`.
    """

    look: Callable[[Plan], Outcome]
    lease_seconds: float = 60.0


@dataclass(frozen=True)
class Operation:
    """One kind of write, as `POST /{name}/dry_run` and `POST /{name}/commit`.

    `plan(inputs, state)` reads the world through `state` and returns the actions, or raises a
    Problem; it changes nothing. It runs in the dry run, and again in the commit's transaction: what
    differs then is the conflict. `apply(plan)` carries the stored plan out on `plan.connection`
    and returns the result; effect, key and result are one transaction.

    `lifespan`: how long a plan can be committed, or `asked_lifespan` for callers who may choose.
    `schema`: JSON Schema 2020-12 for the inputs (needs the extra `schema`).
    """

    name: str
    plan: PlanFunction
    apply: ApplyFunction
    lifespan: timedelta | Lifespan = timedelta(minutes=10)
    schema: Mapping[str, Any] | None = None
    outside: Outside | None = None
    check: Validator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or self.name == "plans":
            raise ValueError(f"{self.name!r} cannot be part of an address, or is taken")
        if any(inspect.iscoroutinefunction(each) for each in (self.plan, self.apply)):
            raise TypeError("plan and apply are plain functions, called in a thread: no async def")
        object.__setattr__(self, "check", validator(self.schema))

    def window(self, request: Request) -> timedelta:
        """How long the plan of this dry run lives."""
        return self.lifespan(request) if callable(self.lifespan) else self.lifespan

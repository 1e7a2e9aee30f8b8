"""Bugs on purpose, one per invariant: the product's processes load one when a test asks for it.

Each replaces a single step by what a careless hand would have written. None of this is reachable
without `DJANGO_SETTINGS_MODULE=tests.chaos.mutated_settings`.
"""

from __future__ import annotations

import itertools
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from django.apps import AppConfig

if TYPE_CHECKING:
    from audit.models import Event
    from audit.writing import Change
    from plans.exchanges import Call, Exchange
    from plans.models import Plan
    from plans.outcomes import Outcome

# Some transactions last longer, as with a slow disk or a lock: then a bad seal shows at once.
LINGER: Final = (0.0, 0.0, 0.15)


def fresh_key_on_retry() -> None:
    """Invariant 1: each resend has a new idempotency key, so the target takes it for a new wish."""
    from plans import committing
    from plans.sending import commit_call as honest

    def commit_call(plan: Plan, number: int) -> Call:
        call = honest(plan, number)
        if number == 1:
            return call
        key = f"idem_{uuid.uuid4().hex}"
        return replace(call, headers={**call.headers, "Idempotency-Key": key})

    _put(committing, commit_call)


def unknown_is_committed() -> None:
    """Invariant 2: no trustworthy answer is taken for a success."""
    from plans import committing
    from plans.outcomes import Kind
    from plans.outcomes import classify as honest

    def classify(exchange: Exchange, **about: Any) -> Outcome:
        outcome = honest(exchange, **about)
        return replace(outcome, kind=Kind.APPLIED) if outcome.kind is Kind.UNKNOWN else outcome

    _put(committing, classify)


def refusal_is_believed_on_a_retry() -> None:
    """Invariant 3: what is said to a later attempt is believed, and not confirmed (FM-14)."""
    from plans import committing
    from plans.outcomes import classify as honest

    def classify(exchange: Exchange, **about: Any) -> Outcome:
        return replace(honest(exchange, **about | {"earlier_unknown": False}), read_first=False)

    _put(committing, classify)


def unknown_is_forgotten() -> None:
    """Invariant 4: the sweep leaves unknown plans alone, resends and reads alike."""
    from plans import committing, resolving
    from plans.models import Plan
    from plans.status import Status

    honest = committing.due

    def due(*arguments: Any) -> list[int]:
        unknown = Plan.objects.filter(status=Status.UNKNOWN).values_list("pk", flat=True)
        found = [] if not arguments else honest(*arguments)
        return sorted(set(found) - set(unknown))

    _put(committing, due)
    _put(resolving, due)


def seals_outrun_their_rows() -> None:
    """Invariant 5: the sealer does not wait for older transactions; their rows miss their seal."""
    from audit import seals, writing
    from plans import lifecycle

    honest_moment, honest_insert = seals._moment, writing.insert_and_change
    linger = itertools.cycle(LINGER)

    def _moment() -> seals.Moment:
        moment = honest_moment()
        return replace(moment, horizon=moment.horizon + 1_000_000)

    def insert_and_change(event: Event, change: Change) -> Event:
        stored = honest_insert(event, change)
        time.sleep(next(linger))
        return stored

    _put(seals, _moment)
    _put(lifecycle, insert_and_change)


def _put(module: Any, function: Callable[..., Any]) -> None:
    """A renamed step must not leave a mutant that changes nothing."""
    assert hasattr(module, function.__name__)
    setattr(module, function.__name__, function)


MUTANTS: Final[dict[str, Callable[[], None]]] = {
    mutant.__name__: mutant
    for mutant in (
        fresh_key_on_retry,
        unknown_is_committed,
        refusal_is_believed_on_a_retry,
        unknown_is_forgotten,
        seals_outrun_their_rows,
    )
}


class Mutants(AppConfig):
    """The mutant comes in last, once every module of the product is there."""

    name = "tests.chaos.mutants"
    label = "mutants"

    def ready(self) -> None:
        MUTANTS[os.environ["CHAOS_MUTANT"]]()

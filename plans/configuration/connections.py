"""Where a target lives and the credential for it: changed together, and never under a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cryptography.fernet import InvalidToken

from audit.actions import Action
from audit.actors import Actor
from audit.recording import Subject, record
from plans import custody
from plans.configuration.changes import KeyChange
from plans.custody import Secret
from plans.models import Plan, Target
from plans.status import ENGAGED, Status

# Approved plans leave at any moment; the others may already be out (T-3).
IN_FLIGHT: Final = (Status.APPROVED, *sorted(ENGAGED))
_NAMED: Final = 10


class PlansInFlight(Exception):
    """Address and credential stay as they are while these plans are in flight (T-3)."""

    def __init__(self, target: Target, plan_ids: Sequence[str]) -> None:
        self.plan_ids = list(plan_ids)
        shown = ", ".join(self.plan_ids[:_NAMED])
        more = len(self.plan_ids) - _NAMED
        super().__init__(
            f"{target.name} has plans in flight, so its address and credential stay as they are: "
            f"{shown}{f' and {more} more' if more > 0 else ''}"
        )


def reconnect(target: Target, base_url: str, credential: Secret | None) -> list[KeyChange]:
    """Give the target this base URL and credential (None: no new one); nothing is saved.

    A new base URL takes the stored credential away (SEC-18). Every change raises
    `connection_version`. Raises PlansInFlight. Hold the target's row lock.
    """
    moved = target.base_url != base_url
    replaced = credential is not None and not holds(target, credential)
    if not (moved or replaced):
        return []
    if target.pk is not None:
        refuse_in_flight(target)
        target.connection_version += 1
    changed = [KeyChange("base_url", target.base_url or None, base_url)] if moved else []
    target.base_url = base_url
    if replaced and credential is not None:
        words = "replaced" if target.credential else "set"
        target.credential = custody.encrypt(credential.reveal().encode())
        changed.append(KeyChange("credential", words=words))
    elif moved and credential is None and target.credential:
        target.credential = None
        changed.append(KeyChange("credential", words="removed: it belonged to the old base_url"))
    return changed


def close_circuit(target: Target, actor: Actor) -> bool:
    """A new connection gets a new chance (T-7). Not saved; recorded when there was a circuit."""
    if target.circuit_opened_at is None:
        return False
    target.circuit_opened_at, target.circuit_reason = None, ""
    details = {"reason": "the connection was changed"}
    record(Action.CIRCUIT_CLOSED, actor, Subject(target=target.name), details)
    return True


def refuse_in_flight(target: Target) -> None:
    """Raise PlansInFlight if a plan of this target is approved or may have been sent."""
    plans = Plan.objects.filter(target=target, status__in=IN_FLIGHT).order_by("pk")
    if found := list(plans.values_list("plan_id", flat=True)):
        raise PlansInFlight(target, found)


def holds(target: Target, credential: Secret) -> bool:
    """Whether this is the stored credential; one that no key opens any more is not."""
    if not target.credential:
        return False
    try:
        stored = custody.decrypt(target.credential)
    except InvalidToken:
        return False
    return Secret(stored.decode()) == credential

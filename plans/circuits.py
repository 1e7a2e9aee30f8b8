"""A credential that a target refused stops first sends; a person says "Try again" (T-7)."""

from __future__ import annotations

from django.db import transaction

from audit.actions import Action
from audit.actors import Actor
from audit.recording import Subject, record
from plans.models import Target


def try_again(pk: int, *, actor: Actor) -> bool:
    """Close the circuit of a target's credential; False when it was not open (T-7)."""
    with transaction.atomic():
        target = Target.objects.select_for_update().get(pk=pk)
        if target.circuit_opened_at is None:
            return False
        details = {"reason": target.circuit_reason}
        Target.objects.filter(pk=pk).update(circuit_opened_at=None, circuit_reason="")
        record(Action.CIRCUIT_CLOSED, actor, Subject(target=target.name), details)
    return True

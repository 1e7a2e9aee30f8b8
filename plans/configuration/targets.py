"""Targets and their operations, as the file names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from audit.actors import Actor
from audit.recording import Subject
from plans.addresses import AddressRefused, check_origin
from plans.configuration import connections
from plans.configuration.changes import Change, KeyChange, assign
from plans.configuration.entries import Entry
from plans.configuration.people import replace_groups
from plans.configuration.refusals import Refused, require
from plans.models import Operation, Target

_CONNECTION = ("base_url", "credential")
_GROUPS = "reviewers"


def apply_targets(entries: Iterable[Entry], actor: Actor, refused: Refused) -> Iterator[Change]:
    """Make or change each target, then its operations; what is refused is told to `refused`."""
    for entry in entries:
        target = Target.objects.select_for_update().filter(name=entry.name).first()
        target = target or Target(name=entry.name)
        if target.pk is None and not require(entry, refused):
            continue
        with refused.at(entry):
            yield from _target(target, entry, actor)
            for operation in entry.nested:
                with refused.at(operation):
                    yield from _operation(target, operation, refused)


def _target(target: Target, entry: Entry, actor: Actor) -> Iterator[Change]:
    created = target.pk is None
    plain = {k: v for k, v in entry.values.items() if k not in (*_CONNECTION, _GROUPS)}
    keys = [*_reconnect(target, entry), *assign(target, plain)]
    if target.min_window_seconds > target.max_window_seconds:
        raise ValueError("min_window_seconds is more than max_window_seconds")
    if any(key.key in _CONNECTION for key in keys):
        connections.close_circuit(target, actor)
    if keys:
        target.save()
    if _GROUPS in entry.values:
        keys += replace_groups(target, _GROUPS, entry.values[_GROUPS])
    if keys:
        yield Change("target", target.name, created, tuple(keys), Subject(target=target.name))


def _reconnect(target: Target, entry: Entry) -> list[KeyChange]:
    internal = entry.values.get("internal", target.internal)
    try:
        origin = check_origin(entry.values.get("base_url", target.base_url), internal)
    except AddressRefused as error:
        raise ValueError(f"base_url is refused: {error.detail}") from None
    try:
        return connections.reconnect(target, str(origin), entry.values.get("credential"))
    except connections.PlansInFlight as error:
        raise ValueError(str(error)) from None


def _operation(target: Target, entry: Entry, refused: Refused) -> Iterator[Change]:
    operation = Operation.objects.filter(target=target, name=entry.name).first()
    operation = operation or Operation(target=target, name=entry.name)
    created = operation.pk is None
    if created and not require(entry, refused):
        return
    keys = assign(operation, entry.values)
    if keys:
        operation.save()
        subject = Subject(target=target.name, operation=operation.name)
        yield Change("operation", str(operation), created, tuple(keys), subject)

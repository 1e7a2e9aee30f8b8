"""`apply()`: a whole file in one transaction, or nothing of it."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import connection, transaction

from audit.actors import Actor
from plans.configuration.agents import apply_agents
from plans.configuration.changes import Change
from plans.configuration.documents import Document
from plans.configuration.entries import Entry, Reading
from plans.configuration.extensions import extensions
from plans.configuration.kinds import AGENT, PERSON, TARGET
from plans.configuration.people import apply_people
from plans.configuration.refusals import Refused
from plans.configuration.targets import apply_targets

type Entries = dict[str, list[Entry]]


def apply(document: Document, actor: Actor, *, check: bool = False) -> list[Change]:
    """Make the rows what the file says, record each change, and return the changes (L-1).

    With `check` the same work is done and taken back, so the answer cannot differ. Raises
    ConfigurationError with every fault found; then nothing is stored.
    """
    reading = Reading(document)
    if reading.faults:
        raise document.error(*reading.faults)
    refused = Refused(document)
    with transaction.atomic():
        _one_at_a_time()
        changes = list(_changes(reading.entries, actor, refused))
        if refused.faults:
            raise document.error(*refused.faults)
        for change in changes:
            change.record(actor)
        if check:
            transaction.set_rollback(True)
    return changes


def _changes(entries: Entries, actor: Actor, refused: Refused) -> Iterator[Change]:
    """People first: agents name them as owners, and policies their groups."""
    yield from apply_people(entries[PERSON.table], refused)
    yield from apply_targets(entries[TARGET.table], actor, refused)
    yield from apply_agents(entries[AGENT.table], refused)
    for extension in extensions():
        yield from extension.apply(entries[extension.kind.table], refused)


def _one_at_a_time() -> None:
    """Two runs at once would both make the same row, and one would fail with half a reason."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('apply_config'))")

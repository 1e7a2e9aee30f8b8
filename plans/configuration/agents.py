"""Agents, as the file names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.contrib.auth.models import User

from audit.recording import Subject
from plans.configuration.changes import Change, KeyChange, assign
from plans.configuration.entries import Entry
from plans.configuration.refusals import Refused, require
from plans.models import Agent


def apply_agents(entries: Iterable[Entry], refused: Refused) -> Iterator[Change]:
    """Make or change each agent; its owner must exist, in the file or before."""
    for entry in entries:
        agent = Agent.objects.select_for_update(of=("self",)).filter(name=entry.name).first()
        created = agent is None
        if created and not require(entry, refused):
            continue
        agent = agent or Agent(name=entry.name)
        with refused.at(entry):
            keys = [*_owner(agent, entry)]
            keys += assign(agent, {k: v for k, v in entry.values.items() if k != "owner"})
            if keys:
                agent.save()
                subject = Subject(agent=agent.name)
                yield Change("agent", agent.name, created, tuple(keys), subject)


def _owner(agent: Agent, entry: Entry) -> list[KeyChange]:
    if "owner" not in entry.values:
        return []
    wanted = entry.values["owner"]
    owner = User.objects.filter(username=wanted).first()
    if owner is None:
        raise ValueError(f"owner {wanted} is nobody here: name the person under [[people]] first")
    if agent.owner_id == owner.pk:
        return []
    before = agent.owner.get_username() if agent.owner_id else None
    agent.owner = owner
    return [KeyChange("owner", before, wanted)]

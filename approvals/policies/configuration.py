"""Policies as a table of the configuration file; the admin has the same rules (7-interfaces)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from django.contrib.auth.models import Group

from approvals.models import Policy
from approvals.policies import conditions
from plans.configuration import values
from plans.configuration.changes import Change, KeyChange, assign
from plans.configuration.entries import Entry
from plans.configuration.kinds import Kind
from plans.configuration.refusals import Refused, require
from plans.models import Operation

_MOST_PEOPLE: Final = 20
_MOST_GROUPS: Final = 10
# A longer look than this belongs into the window of the plan, not into a policy.
_LONGEST_DWELL: Final = 600
_GROUP: Final = values.words(150)
_COUNT: Final = values.whole(1, _MOST_PEOPLE)


def title(value: Any, folder: Path) -> str:
    """A policy's name is words for people: it stands on pages and in refusals."""
    printable = isinstance(value, str) and value.isprintable()
    if not printable or not value.strip() or value != value.strip() or len(value) > 100:
        raise ValueError("must be 1 to 100 printable characters without spaces around them")
    return str(value)


def condition(value: Any, folder: Path) -> str:
    """A CEL condition that compiles; else its fault with line and column."""
    if not isinstance(value, str):
        raise ValueError("must be a text: a CEL condition")
    text = value.replace("\r\n", "\n").strip()
    if wrong := conditions.complaint(text):
        raise ValueError(wrong)
    return text


def people(value: Any, folder: Path) -> list[dict[str, Any]]:
    """A list of {group, count}: the count is 1 where there is none."""
    if not isinstance(value, list) or len(value) > _MOST_GROUPS:
        raise ValueError(f"must be a list of at most {_MOST_GROUPS} like {{ group, count }}")
    found = [_wanted(item, folder) for item in value]
    if len({wanted["group"] for wanted in found}) != len(found):
        raise ValueError("names a group twice")
    return found


def _wanted(item: Any, folder: Path) -> dict[str, Any]:
    if not isinstance(item, dict) or "group" not in item:
        raise ValueError('must be a list like { group = "reviewers", count = 2 }')
    if unknown := sorted(set(item) - {"group", "count"}):
        raise ValueError(f'has an unknown key "{unknown[0]}" beside group and count')
    (group,) = _GROUP([item["group"]], folder)
    return {"group": group, "count": _COUNT(item.get("count", 1), folder)}


POLICY: Final = Kind(
    table="policies",
    noun="policy",
    named_by="name",
    keys={
        "name": title,
        "when": condition,
        "require": people,
        "note_required": values.boolean,
        "step_up": values.boolean,
        "dwell_seconds": values.whole(0, _LONGEST_DWELL),
        "expand_first": values.boolean,
        "deny": values.boolean,
        "raise_risk": values.one_of(["", *Operation.Risk.values]),
        "active": values.boolean,
    },
    required=("when",),
)


def apply_policies(entries: Iterable[Entry], refused: Refused) -> Iterator[Change]:
    """Make or change each policy; a group that nobody made is refused, it may be a slip."""
    for entry in entries:
        policy = Policy.objects.select_for_update().filter(name=entry.name).first()
        policy = policy or Policy(name=entry.name)
        created = policy.pk is None
        if created and not require(entry, refused):
            continue
        with refused.at(entry):
            if missing := unknown_groups(entry.values.get("require", [])):
                raise ValueError(f"require names a group that does not exist: {missing[0]}")
            if keys := assign(policy, entry.values):
                policy.save()
                yield Change("policy", policy.name, created, tuple(keys))


def unknown_groups(wanted: Sequence[dict[str, Any]]) -> list[str]:
    """Those groups that nobody is in because they are not there."""
    names = [each["group"] for each in wanted]
    known = set(Group.objects.filter(name__in=names).values_list("name", flat=True))
    return [name for name in names if name not in known]


def changed_keys(before: Policy | None, after: Policy) -> tuple[KeyChange, ...]:
    """What an edit by hand changes, as the trail keeps it."""
    values = {key: getattr(after, key) for key in POLICY.keys if key != "name"}
    if before is None:
        return tuple(KeyChange(key, None, value) for key, value in values.items())
    return tuple(
        KeyChange(key, getattr(before, key), value)
        for key, value in values.items()
        if getattr(before, key) != value
    )

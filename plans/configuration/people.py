"""People and their groups, as the file names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import Group, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from plans.configuration.changes import Change, KeyChange, assign
from plans.configuration.entries import Entry
from plans.configuration.permissions import OPERATORS, grant_operators
from plans.configuration.refusals import Refused
from plans.custody import Secret
from plans.models import Target


def apply_people(entries: Iterable[Entry], refused: Refused) -> Iterator[Change]:
    """Make or change each person; groups are made when they are missing."""
    entries = list(entries)
    for entry in entries:
        user = User.objects.select_for_update().filter(username=entry.name).first()
        created = user is None
        if user is None:
            user = User(username=entry.name)
            user.set_unusable_password()
        keys = assign(user, {k: v for k, v in entry.values.items() if k == "email"})
        with refused.at(entry):
            keys += _password(user, entry.values.get("password"))
        groups = entry.values.get("groups")
        if groups is not None:
            keys += _admin_access(user, groups)
        if keys or created:
            user.save()
        if groups is not None:
            keys += replace_groups(user, "groups", groups)
        if keys or created:
            yield Change("person", entry.name, created, tuple(keys))
    if any(OPERATORS in entry.values.get("groups", ()) for entry in entries):
        yield from _operators()


def replace_groups(row: User | Target, key: str, names: list[str]) -> list[KeyChange]:
    """Let the row's groups be exactly these."""
    groups = getattr(row, key)
    before = sorted(groups.values_list("name", flat=True))
    if before == sorted(names):
        return []
    groups.set([Group.objects.get_or_create(name=name)[0] for name in names])
    return [KeyChange(key, before, sorted(names))]


def _operators() -> Iterator[Change]:
    if keys := grant_operators():
        yield Change("group", OPERATORS, False, tuple(keys))


def _password(user: User, wanted: Secret | None) -> list[KeyChange]:
    """Set it, unless it is set already. ValueError says why nobody may have it."""
    if wanted is None or check_password(wanted.reveal(), user.password):
        return []
    try:
        validate_password(wanted.reveal(), user)
    except ValidationError as weak:
        raise ValueError(f"password is refused. {' '.join(weak.messages)}") from None
    user.set_password(wanted.reveal())
    return [KeyChange("password", words="set")]


def _admin_access(user: User, groups: list[str]) -> list[KeyChange]:
    """Operators use the admin, nobody else does; a superuser keeps what somebody gave them."""
    wanted = OPERATORS in groups or user.is_superuser
    if user.is_staff == wanted:
        return []
    user.is_staff = wanted
    return [KeyChange("admin access", not wanted, wanted)]
